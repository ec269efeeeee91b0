// In the place of validate_spirv.cpp where the library is built without SPIRV-Tools (HALFSTEP_SPIRV_TOOLS).
#include "vk/shader/validate_spirv.h"

namespace halfstep::vk {

void check_spirv(std::span<const std::uint32_t> /*words*/, std::string_view /*name*/) {}

}  // namespace halfstep::vk
