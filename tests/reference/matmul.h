#pragma once

#include <halfstep/ops.h>

#include "reference/array.h"

namespace halfstep::reference {

Array matmul(const Array& a, const Array& b, const MatmulOptions& options);

/// x {..., in} times weight {in, out} plus bias {out}.
Array linear(const Array& x, const Array& weight, const Array& bias);

}  // namespace halfstep::reference
