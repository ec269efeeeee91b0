#pragma once

#include "plan/lowering.h"

namespace halfstep::ops {

/// Appends the dispatch that converts `from` to the type of `to`.
void lower_cast(plan::Lowering& out, plan::TensorId from, plan::TensorId to);

/// `tensor` if it is f32, otherwise a workspace with its values in f32.
plan::TensorId in_f32(plan::Lowering& out, plan::TensorId tensor);

}  // namespace halfstep::ops
