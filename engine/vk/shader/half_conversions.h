#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// The shader with a conversion to f16 (OpFConvert) in place of each packHalf2x16(), whose rounding Vulkan leaves open
/// whatever VK_KHR_shader_float_controls asks for: RADV of Mesa 25 rounds to zero there. For devices with
/// shaderFloat16.
std::vector<std::uint32_t> with_half_conversions(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
