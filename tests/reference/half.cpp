#include "reference/half.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfstep::reference {
namespace {

/// The exponent of the last place of an f16 of magnitude `magnitude`.
int last_place(double magnitude) {
  return std::max(std::ilogb(magnitude), -14) - 10;
}

std::uint16_t bits_of_magnitude(double half) {
  if (std::isinf(half)) return 0x7C00;
  if (half < 0x1p-14) return static_cast<std::uint16_t>(half * 0x1p24);
  const int exponent = std::ilogb(half);
  const double fraction = std::ldexp(half, -exponent) - 1;
  return static_cast<std::uint16_t>(((exponent + 15) << 10) + static_cast<int>(fraction * 1024));
}

std::uint16_t with_sign(float value, std::uint16_t magnitude) {
  return static_cast<std::uint16_t>(magnitude | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

double round_to_half(double value) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int place = last_place(std::abs(value));
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -place)), place);
  return std::abs(rounded) < 65536 ? rounded : std::copysign(std::numeric_limits<double>::infinity(), value);
}

std::uint16_t half_bits(float value) {
  if (std::isnan(value)) return with_sign(value, 0x7E00);
  return with_sign(value, bits_of_magnitude(std::abs(round_to_half(value))));
}

std::uint16_t stochastic_half_bits(float value, std::uint32_t random) {
  const double magnitude = std::abs(static_cast<double>(value));
  if (std::isnan(value)) return with_sign(value, 0x7E00);
  if (magnitude >= 65520) return with_sign(value, 0x7C00);
  if (magnitude < std::numeric_limits<float>::min()) return with_sign(value, 0);
  const int place = last_place(magnitude);
  const double units = std::ldexp(magnitude, -place);
  const int f32_place = std::ilogb(magnitude) - 23;
  const int bits = std::min(place - f32_place, 31);
  const double below = std::floor(units);
  const double excess = std::floor(std::ldexp(units - below, bits));
  const auto noise = static_cast<double>(random & ((std::uint64_t{1} << bits) - 1));
  const bool up = excess + noise >= std::ldexp(1.0, bits);
  const double rounded = std::min(std::ldexp(below + (up ? 1 : 0), place), 65504.0);
  return with_sign(value, bits_of_magnitude(rounded));
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) {
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

}  // namespace halfstep::reference
