#pragma once

#include <halfstep/ops.h>

#include <string>
#include <string_view>
#include <vector>

#include "graph/operator.h"
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

/// As an operator's attributes, followed by `more`.
graph::Attributes attributes(const Pool2d& pool, graph::Attributes more = {});

/// Windows that make images {n, h, w, c} into `size`.
Pool2d adaptive_pool(std::string_view op, Tensor images, const Pair& size);

/// Throws Error where `options` are not positive, or the padding is more than half the kernel.
Pool2d checked_pool(std::string_view op, const Pool2dOptions& options);

/// The extents of the largest window over images of shape `input` that makes them `output`.
Pair largest_window(const Pool2d& pool, const Shape& input, const Shape& output);
/// Over how many rows and columns of windows a pixel is spread at most.
Pair most_windows(const Pool2d& pool, const Shape& input, const Shape& output);
/// Loop rounds of two loops, one in the other, with `inside` rounds of other loops in each round of the inner one.
std::int64_t loop_rounds(const Pair& extents, std::int64_t inside = 0);

/// Appends a kernel of pool/pool.glsl with one invocation for each quad of a tensor of shape `grid`. `shader` lacks
/// the storage, which is that of the operator's result. `rounds` is plan::Dispatch::rounds.
void dispatch_pool(plan::Lowering& out, const std::string& shader, const Pool2d& pool, const Shape& input,
                   const Shape& output, const Shape& grid, std::int64_t rounds);

/// What the pooling operators have in common: all but their gradient. The kernel is that of the operator's name.
class Pooling : public graph::Operator {
 public:
  explicit Pooling(const Pool2d& pool) : pool_(pool) {}

  /// {n, h, w, c} of the images becomes that of the result. Throws Error where they are no images or no window fits.
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void lower(plan::Lowering& out) const override;
  graph::Attributes attributes() const override { return ops::attributes(pool_); }

 protected:
  Pool2d pool_;
};

}  // namespace halfstep::ops
