#include "reference/narrow.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfstep::reference {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

std::uint16_t with_sign(float value, int magnitude) {
  return static_cast<std::uint16_t>(magnitude | (std::signbit(value) ? 0x8000 : 0));
}

}  // namespace

std::uint16_t Narrow::infinity() const {
  return static_cast<std::uint16_t>((2 * bias_ + 1) << fraction_bits_);
}

double Narrow::unit() const {
  return std::ldexp(1, -fraction_bits_ - 1);
}

double Narrow::smallest() const {
  return std::ldexp(1, 1 - bias_ - fraction_bits_);
}

double Narrow::end() const {
  return std::ldexp(2 - std::ldexp(1, -fraction_bits_ - 1), bias_);
}

int Narrow::last_place(double magnitude) const {
  return std::max(std::ilogb(magnitude), 1 - bias_) - fraction_bits_;
}

std::uint16_t Narrow::bits_of_magnitude(double number) const {
  if (std::isinf(number)) return infinity();
  if (number < std::ldexp(1, 1 - bias_)) {
    return static_cast<std::uint16_t>(std::ldexp(number, bias_ - 1 + fraction_bits_));
  }
  const int exponent = std::ilogb(number);
  const double fraction = std::ldexp(number, -exponent) - 1;
  return static_cast<std::uint16_t>(((exponent + bias_) << fraction_bits_) +
                                    static_cast<int>(std::ldexp(fraction, fraction_bits_)));
}

double Narrow::rounded(double value) const {
  if (value == 0 || !std::isfinite(value)) return value;
  const int place = last_place(std::abs(value));
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -place)), place);
  return std::abs(rounded) < end() ? rounded : std::copysign(infinite, value);
}

std::uint16_t Narrow::bits(float value) const {
  if (std::isnan(value)) return with_sign(value, infinity() | 1 << (fraction_bits_ - 1));
  return with_sign(value, bits_of_magnitude(std::abs(rounded(static_cast<double>(value)))));
}

std::uint16_t Narrow::stochastic_bits(float value, std::uint32_t random) const {
  const double magnitude = std::abs(static_cast<double>(value));
  if (std::isnan(value)) return bits(value);
  if (magnitude >= end()) return with_sign(value, infinity());
  if (magnitude == 0) return with_sign(value, 0);
  const int place = last_place(magnitude);
  const double units = std::ldexp(magnitude, -place);
  const int f32_place = std::max(std::ilogb(magnitude), -126) - 23;
  const int drawn = std::min(place - f32_place, 31);
  const double below = std::floor(units);
  const double excess = std::floor(std::ldexp(units - below, drawn));
  const auto noise = static_cast<double>(random & ((std::uint64_t{1} << drawn) - 1));
  const bool up = excess + noise >= std::ldexp(1.0, drawn);
  const double rounded = std::ldexp(below + (up ? 1 : 0), place);
  return with_sign(value, std::min<int>(bits_of_magnitude(std::min(rounded, end())), infinity() - 1));
}

double Narrow::value(std::uint16_t bits) const {
  const int exponent = (bits & 0x7FFF) >> fraction_bits_;
  const int fraction = bits & ((1 << fraction_bits_) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * bias_ + 1) return fraction == 0 ? sign * infinite : std::numeric_limits<double>::quiet_NaN();
  const int whole = exponent == 0 ? fraction : (1 << fraction_bits_) + fraction;
  return sign * std::ldexp(whole, std::max(exponent, 1) - bias_ - fraction_bits_);
}

const Narrow& narrow(DType dtype) {
  return dtype == DType::f16 ? half : bfloat;
}

}  // namespace halfstep::reference
