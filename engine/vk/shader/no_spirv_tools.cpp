// In the place of what uses SPIRV-Tools where the library is built without it (HALFSTEP_SPIRV_TOOLS).
#include "vk/shader/specialize.h"
#include "vk/shader/validate_spirv.h"

namespace halfstep::vk {

bool has_optimizer() {
  return false;
}

std::vector<std::uint32_t> specialized(std::span<const std::uint32_t> words, const Constants& /*constants*/) {
  return {words.begin(), words.end()};
}

void check_spirv(std::span<const std::uint32_t> /*words*/, std::string_view /*name*/) {}

}  // namespace halfstep::vk
