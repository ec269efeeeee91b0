#pragma once

#include <halfstep/tensor.h>

#include "plan/lowering.h"

namespace halfstep::ops {

/// What `x` is a cast of, if that is f32; `x` otherwise.
Tensor before_cast(Tensor x);

/// `x` if it is of that type, otherwise a cast of it.
Tensor in_type(Tensor x, DType dtype);

/// Appends the dispatch that converts `from` to the type of `to`.
void lower_cast(plan::Lowering& out, plan::TensorId from, plan::TensorId to);

/// `tensor` if it is f32, otherwise a workspace with its values in f32.
plan::TensorId in_f32(plan::Lowering& out, plan::TensorId tensor);

}  // namespace halfstep::ops
