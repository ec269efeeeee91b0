#pragma once

#include <halfstep/tensor.h>

#include <vector>

namespace halfstep::ops {

/// How positions of a result are taken from along one axis: position p from (p * step + offset) / divisor.
struct WindowAxis {
  std::int64_t step = 1;
  std::int64_t offset = 0;
  std::int64_t divisor = 1;
};

/// A tensor of `shape` with x's element where every axis has one, and zero where the division leaves a remainder or the
/// place is not in x: slicing, padding and the gradients of both. One entry of `axes` for each axis of x.
Tensor window(Tensor x, Shape shape, std::vector<WindowAxis> axes);

}  // namespace halfstep::ops
