#pragma once

#include <halfstep/ops.h>

namespace halfstep::ops {

/// The product of matmul(), in f32 whatever its operands' type is. For lowering: it has no gradient.
Tensor matmul_in_f32(Tensor a, Tensor b, MatmulOptions options);

}  // namespace halfstep::ops
