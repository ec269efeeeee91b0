#pragma once

#include <halfstep/ops.h>

namespace halfstep::ops {

/// {..., columns} as {rows, columns}.
inline Tensor rows_of(Tensor x) {
  return reshape(x, {-1, x.dim(-1)});
}

}  // namespace halfstep::ops
