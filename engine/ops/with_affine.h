#pragma once

#include <halfstep/tensor.h>

#include <span>

namespace halfstep::ops {

struct WeightAndBias {
  Tensor weight;  ///< {..., c}
  Tensor bias;    ///< {c}
};

/// Those of an operator of `inputs`, x, weight and perhaps a bias, whose result is to be multiplied by `factor` {c} and
/// moved by `offset` {c}, in the operator's type.
WeightAndBias with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset);

}  // namespace halfstep::ops
