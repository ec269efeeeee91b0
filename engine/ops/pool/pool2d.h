#pragma once

#include <halfstep/ops.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/operator.h"
#include "plan/lowering.h"

namespace halfstep::ops {

/// Pool2dOptions with defaults filled in.
struct Pool2d {
  Pair kernel;
  Pair stride;
  Pair padding;
  bool count_padding;
  std::optional<Pair> adaptive{};  ///< the extents of the result, for adaptive pooling
};

/// As an operator's attributes, followed by `more`.
graph::Attributes attributes(const Pool2d& pool, graph::Attributes more = {});

/// Windows that reduce images {n, h, w, c} to `size`.
Pool2d adaptive_pool(std::string_view op, Tensor images, const Pair& size);

/// Throws Error if `options` are not positive, or the padding is more than half the kernel.
Pool2d checked_pool(std::string_view op, const Pool2dOptions& options);

/// The extents of the largest window that reduces images of shape `input` to `output`.
Pair largest_window(const Pool2d& pool, const Shape& input, const Shape& output);
/// The largest number of rows and columns of windows that cover one pixel.
Pair most_windows(const Pool2d& pool, const Shape& input, const Shape& output);
/// Loop rounds of two nested loops, with `inside` rounds of other loops in each round of the inner one.
std::int64_t loop_rounds(const Pair& extents, std::int64_t inside = 0);

/// A kernel that includes pool/pool_lanes.glsl: the extents of what it goes through for a window, and how many of its
/// first operands it reads by address.
struct PoolLanes {
  std::string shader;
  Pair pixels;
  std::uint32_t addressed;
};

/// Appends a kernel of pool/pool.glsl with one invocation for each quad of a tensor of shape `grid`. `shader` is the
/// name without the storage type, which is that of the operator's result. `rounds` is plan::Dispatch::rounds. `lanes`,
/// if there is such a kernel, is taken in its place where the device and the shapes allow it.
void dispatch_pool(plan::Lowering& out, const std::string& shader, const Pool2d& pool, const Shape& input,
                   const Shape& output, const Shape& grid, std::int64_t rounds,
                   const std::optional<PoolLanes>& lanes = std::nullopt);

/// The base of the pooling operators: everything except the gradient. The kernel has the operator's name.
class Pooling : public graph::Operator {
 public:
  explicit Pooling(const Pool2d& pool) : pool_(pool) {}

  /// The shape {n, h, w, c} of the result. Throws Error if the input is not images or no window fits.
  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override;
  void lower(plan::Lowering& out) const override;
  graph::Attributes attributes() const override { return ops::attributes(pool_); }

 protected:
  /// The kernel by lanes that computes the same, if there is one.
  virtual std::optional<PoolLanes> lanes() const { return std::nullopt; }

  Pool2d pool_;
};

}  // namespace halfstep::ops
