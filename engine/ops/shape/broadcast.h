#pragma once

#include <halfstep/tensor.h>

#include <string_view>

namespace halfstep::ops {

/// The shape that tensors of shapes `a` and `b` broadcast to, as in NumPy: aligned at the last axis, an extent of 1 is
/// repeated. Throws Error if they are not compatible.
Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b);

/// Sums `gradient` over the axes along which a tensor of `shape` was repeated: the gradient of broadcasting. The shape
/// is passed by value, because a reference into a tensor becomes invalid when operators are added to its graph.
Tensor sum_to_shape(Tensor gradient, Shape shape);

/// x repeated to the shape of `result`, which it broadcasts to, times `factor`, in the type of `result`.
Tensor expand(Tensor x, TensorType result, float factor = 1);

}  // namespace halfstep::ops
