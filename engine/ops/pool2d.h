#pragma once

#include <halfstep/ops.h>

#include <string>
#include <string_view>

#include "plan/lowering.h"

namespace halfstep::ops {

/// Pool2dOptions with every choice made.
struct Pool2d {
  Pair kernel;
  Pair stride;
  Pair padding;
  bool count_padding;
  std::optional<Pair> adaptive{};  ///< the extents of the result, where windows are made to fit them
};

/// Windows that make images {n, h, w, c} into `size`.
Pool2d adaptive_pool(std::string_view op, Tensor images, const Pair& size);

/// Throws Error where `options` are not positive, or the padding is more than half the kernel.
Pool2d checked_pool(std::string_view op, const Pool2dOptions& options);

/// The shape of the pooled `images`. Throws Error where they are no images or no window fits.
Shape pooled_shape(std::string_view op, const Pool2d& pool, const TensorType& images);

/// Appends a kernel of common/pool.glsl with one invocation for each quad of a tensor of shape `grid`. `shader` lacks
/// the storage, which is that of the operator's result.
void dispatch_pool(plan::Lowering& out, const std::string& shader, const Pool2d& pool, const Shape& input,
                   const Shape& output, const Shape& grid);

}  // namespace halfstep::ops
