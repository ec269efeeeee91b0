#pragma once

#include <halfstep/tensor.h>

#include <optional>
#include <span>

namespace halfstep::ops {

struct WeightAndBias {
  Tensor weight;  ///< {..., c}
  Tensor bias;    ///< {c}
};

/// Those of an operator of `inputs`, x, weight and perhaps a bias, whose result is to be multiplied by `factor` {c} and
/// moved by `offset` {c}, both f32. Empty where it works in 16 bits: weights and offset would be rounded to its type,
/// and where a channel's mean is large beside its deviation, little would be left of their difference.
std::optional<WeightAndBias> with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset);

}  // namespace halfstep::ops
