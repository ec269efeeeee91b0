#include "ops/with_affine.h"

#include <halfstep/ops.h>

namespace halfstep::ops {

std::optional<WeightAndBias> with_affine(std::span<const Tensor> inputs, Tensor factor, Tensor offset) {
  if (is_narrow(inputs[0].dtype())) return {};
  const Tensor weight = mul(inputs[1], factor);
  return WeightAndBias{weight, inputs.size() == 3 ? add(mul(inputs[2], factor), offset) : offset};
}

}  // namespace halfstep::ops
