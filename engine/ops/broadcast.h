#pragma once

#include <halfstep/tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/lowering.h"

namespace halfstep::ops {

/// The shape that tensors of shapes `a` and `b` broadcast to, as in NumPy: aligned at the last axis, an extent of 1 is
/// repeated. Throws Error where they do not fit.
Shape broadcast_shape(std::string_view op, const Shape& a, const Shape& b);

/// How a broadcasting kernel walks its operands: common/broadcast.glsl.
struct BroadcastPush {
  std::uint32_t quads;
  std::uint32_t quads_per_row;
  std::uint32_t columns;
  float factor;
  std::array<std::uint32_t, 8> extents;
  std::array<std::uint32_t, 8> strides_a;
  std::array<std::uint32_t, 8> strides_b;
};
struct Broadcast {
  BroadcastPush push;
  std::vector<std::uint32_t> constants;  ///< specialization constants 1 to 4
};
Broadcast plan_broadcast(const plan::Lowering& out, const Shape& result, const Shape& a, const Shape& b, float factor);

/// Sums `gradient` over the axes along which a tensor of `shape` was repeated: the gradient of broadcasting. The shape
/// is taken by value: a tensor's own moves when operators are added to its graph.
Tensor sum_to_shape(Tensor gradient, Shape shape);

/// x repeated to `shape`, which it broadcasts to, times `factor`.
Tensor expand(Tensor x, Shape shape, float factor = 1);

}  // namespace halfstep::ops
