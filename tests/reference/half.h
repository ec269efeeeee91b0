#pragma once

#include <cstdint>

namespace halfstep::reference {

/// The f16 nearest to `value`, ties to even, as a number; infinite from 65520 on.
double round_to_half(double value);

/// The bits of the f16 nearest to `value`; any NaN is 0x7E00 with its sign.
std::uint16_t half_bits(float value);

/// The bits of the f16 that `value` is rounded to with 32 random bits. With a spacing of u between the halves around
/// |value|, the magnitude is rounded up if what it has above the half below, in units of u / 2^b, plus b random bits
/// reach 2^b: b is 13 for normal halves, and as many as f32 has below 2^-24 for subnormal ones, at most 31.
std::uint16_t stochastic_half_bits(float value, std::uint32_t random);

/// The number that f16 bits stand for.
double half_value(std::uint16_t bits);

}  // namespace halfstep::reference
