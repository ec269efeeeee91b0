#pragma once

#include <halfstep/tensor.h>

#include <cstdint>

namespace halfstep::reference {

/// A floating type of 16 bits: a sign, some bits of exponent, the rest of significand; in double.
class Narrow {
 public:
  constexpr explicit Narrow(int exponent_bits)
      : bias_((1 << (exponent_bits - 1)) - 1), fraction_bits_(15 - exponent_bits) {}

  /// The bits of positive infinity; finite numbers' are below, NaN's above.
  std::uint16_t infinity() const;
  /// Rounding changes a normal number by no more than this, relative to it.
  double unit() const;
  /// The smallest positive number.
  double smallest() const;
  /// From here on, half a unit beyond the largest number, rounding makes an infinity.
  double end() const;

  /// The number nearest to `value`, ties to even, or infinity.
  double rounded(double value) const;
  /// Its bits; any NaN is the quiet one of no payload, with its sign.
  std::uint16_t bits(float value) const;
  /// The bits of the number that `value` is rounded to with 32 random bits. With a spacing of u between the numbers
  /// around |value|, the magnitude is rounded up if what it has above the number below, in units of u / 2^b, plus b
  /// random bits reach 2^b: b is as many bits as f32 has there below u, at most 31.
  std::uint16_t stochastic_bits(float value, std::uint32_t random) const;
  /// The number that bits stand for.
  double value(std::uint16_t bits) const;

  /// The distance from `magnitude` to the next number is 2 to this.
  int last_place(double magnitude) const;

 private:
  std::uint16_t bits_of_magnitude(double number) const;

  int bias_;
  int fraction_bits_;
};

inline constexpr Narrow half(5);
inline constexpr Narrow bfloat(8);

/// The type that is stored in 16 bits.
const Narrow& narrow(DType dtype);

}  // namespace halfstep::reference
