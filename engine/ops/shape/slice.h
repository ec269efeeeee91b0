#pragma once

#include <halfstep/tensor.h>

#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// The source of a result's positions along one axis: position p comes from (p * step + offset) / divisor.
struct WindowAxis {
  std::int64_t step = 1;
  std::int64_t offset = 0;
  std::int64_t divisor = 1;
};

/// A tensor of `shape` whose elements come from x, or are zero if on any axis the division has a remainder or the
/// position is outside x. Implements slicing, padding and the gradients of both. One entry of `axes` for each axis of
/// x. Where x is such a tensor itself, and no axis is changed twice, this is a window of what that came from.
Tensor window(Tensor x, Shape shape, std::vector<WindowAxis> axes);

/// Appends the dispatch that does so for tensors of at most 5 axes.
void lower_window(plan::Lowering& out, plan::TensorId x, plan::TensorId result, const std::vector<WindowAxis>& axes);

/// `shape` with the axes around one taken together: {before the axis, the axis and all inside it but the last, the
/// last}, or {before the axis, the axis} where it is the last. Parts along the axis are parts along axis 1 of the view.
struct AxisView {
  Shape shape;
  std::int64_t inner;  ///< positions on axis 1 for each on the axis
};
AxisView view_of_axis(const Shape& shape, std::size_t axis);

}  // namespace halfstep::ops
