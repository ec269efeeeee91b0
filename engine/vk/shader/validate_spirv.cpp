#include "vk/shader/validate_spirv.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <spirv-tools/libspirv.hpp>

#include <string>

namespace halfstep::vk {

void check_spirv(std::span<const std::uint32_t> words, std::string_view name) {
  std::string first;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_1);
  tools.SetMessageConsumer(
      [&](spv_message_level_t /*level*/, const char* /*source*/, const spv_position_t& /*at*/, const char* text) {
        if (first.empty()) first = text;
      });
  if (tools.Validate(words.data(), words.size())) return;
  fail("shader", fmt::format("expected valid SPIR-V for Vulkan 1.1 of {}, got a fault: {}", name, first),
       "compile it with --target-env vulkan1.1");
}

}  // namespace halfstep::vk
