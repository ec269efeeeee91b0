#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// OpFDot2MixAcc32VALVE: two vectors of two f16, and the f32 that the products of their components are added to.
inline constexpr std::uint32_t op_f_dot2_mix_acc32 = 6916;

/// The shader with that instruction (SPV_VALVE_mixed_float_dot_product) in place of each sum + dot(unpackHalf2x16(a),
/// unpackHalf2x16(b)), which is what it means; unchanged where it has none. The order in which the
/// instruction adds is the device's own, and subnormal sums may become 0.
std::vector<std::uint32_t> with_mixed_dots(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
