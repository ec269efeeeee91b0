#include "ops/with_affine.h"

#include <halfstep/ops.h>

#include "ops/elementwise/cast.h"

namespace halfstep::ops {

WeightAndBias with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset) {
  const auto scaled = [&](Tensor v) { return mul(in_type(before_cast(v), factor.dtype()), factor); };
  const Tensor weight = scaled(inputs[1]);
  const Tensor bias = inputs.size() == 3 ? add(scaled(inputs[2]), offset) : offset;
  return {in_type(weight, inputs[1].dtype()), in_type(bias, inputs[0].dtype())};
}

}  // namespace halfstep::ops
