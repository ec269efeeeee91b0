#pragma once

#include <halfstep/tensor.h>

#include <optional>

/// Linear layers whose factors have 8 bits, in the format E4M3: 4 bits of exponent, 3 of significand, numbers up to 448
/// in steps of 2^-9 at the least, NaN and no infinity (Micikevicius et al., "FP8 Formats for Deep Learning", 2022).
/// Each tensor is scaled by a power of two of its own, found from its largest magnitude when it is rounded.
///
/// Such numbers are stored in f16, divided by 256: they are then the f16 numbers of magnitude up to 1.75 whose lowest 7
/// bits are 0. So every kernel for f16 multiplies them, exactly, and matrix units for E4M3 take them by a shift.
namespace halfstep::ops {

/// As it is stored, the nearest of such numbers, ties to even: of `value`, finite and with that scale; 1.75 beyond it.
float nearest_float8(float value);

/// The numbers nearest to those of a tensor.
struct Float8 {
  Tensor values;  ///< f16
  Tensor unit;    ///< f32, a scalar: what values count; NaN, as are all values, if one of the tensor's is not finite
};

/// Of a tensor of f16. Its gradient is that of what it rounds.
Float8 to_float8(Tensor x);

/// `linear` of x and weight in f16, by products of such numbers with sums in f32. So are its gradients, of dy rounded
/// likewise.
Tensor float8_linear(Tensor x, Tensor weight, std::optional<Tensor> bias);

}  // namespace halfstep::ops
