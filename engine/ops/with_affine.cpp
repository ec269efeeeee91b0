#include "ops/with_affine.h"

#include <halfstep/ops.h>

#include "ops/elementwise/cast.h"

namespace halfstep::ops {

WeightAndBias with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset) {
  const auto scaled = [&](Tensor v) { return mul(v, in_type(factor, v.dtype())); };
  const Tensor moved = in_type(offset, inputs[0].dtype());
  return {scaled(inputs[1]), inputs.size() == 3 ? add(scaled(inputs[2]), moved) : moved};
}

}  // namespace halfstep::ops
