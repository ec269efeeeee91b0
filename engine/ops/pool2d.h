#pragma once

#include <halfstep/ops.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "plan/lowering.h"

namespace halfstep::ops {

/// Pool2dOptions with every choice made.
struct Pool2d {
  Pair kernel;
  Pair stride;
  Pair padding;
  bool count_padding;
};

/// Throws Error where `options` are not positive, or the padding is more than half the kernel.
Pool2d checked_pool(std::string_view op, const Pool2dOptions& options);

/// The shape of the pooled `images`. Throws Error where they are no images or no window fits.
Shape pooled_shape(std::string_view op, const Pool2d& pool, const TensorType& images);

/// The push constants of common/pool.glsl, for a kernel that writes a tensor of shape `written`.
struct Pool2dPush {
  std::uint32_t quads;
  std::uint32_t channel_quads;
  std::array<std::int32_t, 2> input_size;
  std::array<std::int32_t, 2> output_size;
  std::array<std::int32_t, 2> kernel;
  std::array<std::int32_t, 2> stride;
  std::array<std::int32_t, 2> padding;
};
Pool2dPush pool_push(const plan::Lowering& out, const Pool2d& pool, const Shape& input, const Shape& output,
                     const Shape& written);

}  // namespace halfstep::ops
