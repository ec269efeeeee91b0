#pragma once

#include <halfstep/tensor.h>

#include <span>

namespace halfstep::ops {

struct WeightAndBias {
  Tensor weight;  ///< {..., c}
  Tensor bias;    ///< {c}
};

/// Those of an operator of `inputs`, x, weight and perhaps a bias, whose result is to be multiplied by `factor` {c} and
/// moved by `offset` {c}. Computed in the type of these, from weights as they were before a cast, and then rounded to
/// the operator's own: an error of a factor would be one of a whole channel.
WeightAndBias with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset);

}  // namespace halfstep::ops
