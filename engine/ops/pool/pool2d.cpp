#include "ops/pool/pool2d.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

#include "ops/expect.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

std::string to_string(const Pair& pair) {
  return fmt::format("{{{}, {}}}", pair[0], pair[1]);
}

/// The shape of the pooled `images`.
Shape pooled_shape(std::string_view op, const Pool2d& pool, const TensorType& images) {
  expect_float(op, "images", images);
  expect_rank(op, "images", images, 4, "{n, h, w, c}");
  Shape result = images.shape;
  if (pool.adaptive) return {images.shape[0], (*pool.adaptive)[0], (*pool.adaptive)[1], images.shape[3]};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t room = images.shape[i + 1] + 2 * pool.padding[i] - pool.kernel[i];
    if (room < 0) {
      fail(op, fmt::format("expected images that a window of {} fits into, got {}", to_string(pool.kernel),
                           to_string(images)));
    }
    result[i + 1] = room / pool.stride[i] + 1;
  }
  return result;
}

/// `of` positions are divided into `places` ranges, range i from floor(i of / places) up to but not including ceil((i +
/// 1) of / places). Returns the extent of the widest.
std::int64_t widest_range(std::int64_t places, std::int64_t of) {
  std::int64_t widest = 0;
  for (std::int64_t i = 0; i < places; ++i)
    widest = std::max(widest, plan::divided_up((i + 1) * of, places) - i * of / places);
  return widest;
}

}  // namespace

Pool2d checked_pool(std::string_view op, const Pool2dOptions& options) {
  constexpr std::int64_t most = 1 << 15;
  const Pool2d pool{
      options.kernel, options.stride.value_or(options.kernel), options.padding, options.count_padding, {}};
  for (std::size_t i = 0; i < 2; ++i) {
    if (pool.kernel[i] < 1 || pool.kernel[i] > most) {
      fail(op, fmt::format("expected a kernel of 1 to {}, got {}", most, to_string(pool.kernel)));
    }
    if (pool.stride[i] < 1 || pool.stride[i] > most) {
      fail(op, fmt::format("expected strides of 1 to {}, got {}", most, to_string(pool.stride)));
    }
    if (pool.padding[i] < 0 || pool.padding[i] > pool.kernel[i] / 2) {
      fail(op, fmt::format("expected padding from 0 to half the kernel {}, got {}", to_string(pool.kernel),
                           to_string(pool.padding)));
    }
  }
  return pool;
}

graph::Attributes attributes(const Pool2d& pool, graph::Attributes more) {
  graph::Attributes all{{"kernel", graph::list_of(pool.kernel)},
                        {"stride", graph::list_of(pool.stride)},
                        {"padding", graph::list_of(pool.padding)},
                        {"count_padding", pool.count_padding}};
  if (pool.adaptive) all.push_back({"size", graph::list_of(*pool.adaptive)});
  std::ranges::move(more, std::back_inserter(all));
  return all;
}

Pool2d adaptive_pool(std::string_view op, Tensor images, const Pair& size) {
  expect_rank(op, "images", images.type(), 4, "{n, h, w, c}");
  // The kernel multiplies positions of one by extents of the other, in 32 bits.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t extent = images.shape()[i + 1];
    if (size[i] < 1 || size[i] >= most / (extent + 1)) {
      fail(op, fmt::format("expected a size of 1 or more whose product with the extents of {} is below 2^31, got {}",
                           to_string(images.type()), to_string(size)));
    }
  }
  return {.kernel = {1, 1}, .stride = {1, 1}, .padding = {0, 0}, .count_padding = false, .adaptive = size};
}

Pair largest_window(const Pool2d& pool, const Shape& input, const Shape& output) {
  if (!pool.adaptive) return pool.kernel;
  return {widest_range(output[1], input[1]), widest_range(output[2], input[2])};
}

Pair most_windows(const Pool2d& pool, const Shape& input, const Shape& output) {
  if (pool.adaptive) return {widest_range(input[1], output[1]), widest_range(input[2], output[2])};
  return {plan::divided_up(pool.kernel[0], pool.stride[0]), plan::divided_up(pool.kernel[1], pool.stride[1])};
}

std::int64_t loop_rounds(const Pair& extents, std::int64_t inside) {
  return extents[0] * (extents[1] * (1 + inside) + 2) + 1;
}

namespace {

/// How many of the `width` windows of a line a workgroup of a kernel of pool/pool_lanes.glsl has, that goes through
/// `pixels` of each. 0: one window has too many, since there is code for each.
std::int64_t windows_of_group(std::int64_t width, std::int64_t pixels) {
  constexpr std::int64_t most_pixels = 64;
  if (pixels > most_pixels) return 0;
  std::int64_t windows = std::clamp<std::int64_t>(most_pixels / pixels, 1, width);
  while (width % windows != 0) --windows;
  return windows;
}

/// The form of f32 of a dispatch with `constants` over windows in a `grid` {n, h, w, c}.
std::optional<plan::FormOfF32> lanes_form(const plan::Lowering& out, const Pool2d& pool, const Shape& grid,
                                          const PoolLanes& lanes, std::vector<std::uint32_t> constants) {
  const plan::Target& target = out.target();
  const std::uint32_t size = target.subgroups.size;
  const std::int64_t channels = plan::layout(grid).quads_per_row() * 4;
  const std::int64_t windows = windows_of_group(grid[2], lanes.pixels[0] * lanes.pixels[1]);
  // As shaders/common/across_lanes.glsl asks.
  const bool has_lanes = target.uniform_loads && target.subgroups.hand_over() && size >= 8;
  if (!has_lanes || pool.adaptive || channels % size != 0 || windows == 0) return std::nullopt;
  const std::int64_t of_image = grid[1] * (grid[2] / windows) * (channels / size);
  if (of_image > target.max_groups[0] || grid[0] > target.max_groups[1]) return std::nullopt;
  constants[0] = size;
  constants.push_back(index32(out, windows));
  return plan::FormOfF32{.shader = lanes.shader,
                         .constants = std::move(constants),
                         .groups = {index32(out, of_image), index32(out, grid[0]), 1},
                         .addressed = (1U << lanes.addressed) - 1};
}

}  // namespace

void dispatch_pool(plan::Lowering& out, const std::string& shader, const Pool2d& pool, const Shape& input,
                   const Shape& output, const Shape& grid, std::int64_t rounds, const std::optional<PoolLanes>& lanes) {
  const plan::Layout lay = plan::layout(grid);
  std::vector<std::uint32_t> constants{index32(out, lay.quads_per_row())};
  for (const Pair& pair : {Pair{input[1], input[2]}, Pair{output[1], output[2]}, pool.kernel, pool.stride, pool.padding,
                           Pair{grid[1], grid[2]}}) {
    for (const std::int64_t value : pair) constants.push_back(index32(out, value));
  }
  constants.push_back(pool.count_padding);
  constants.push_back(pool.adaptive.has_value());
  std::vector<plan::Operand> operands;
  for (std::size_t i = 0; i < out.input_count(); ++i) operands.push_back({out.input(i), plan::Access::read});
  operands.push_back({out.output(0), plan::Access::write});
  const auto result = static_cast<std::uint32_t>(out.input_count());
  const std::uint32_t local_size = plan::flat_local_size(out.target());
  constants.insert(constants.begin(), local_size);
  std::optional<plan::FormOfF32> of_f32;
  if (lanes) of_f32 = lanes_form(out, pool, grid, *lanes, constants);
  out.dispatch({.label = {},
                .shader = variant(out, shader, out.type(out.output(0)).dtype),
                .constants = std::move(constants),
                .push = plan::push_bytes(index32(out, lay.quads())),
                .operands = std::move(operands),
                .groups = plan::groups_for(out.target(), lay.quads(), local_size),
                .rounds = rounds,
                .expression = result_expression(out, out.output(0), result, result + 1),
                .of_f32 = std::move(of_f32)});
}

std::vector<TensorType> Pooling::infer(std::span<const TensorType> inputs) const {
  expect_count(name(), inputs, 1);
  return {{inputs[0].dtype, pooled_shape(name(), pool_, inputs[0])}};
}

void Pooling::lower(plan::Lowering& out) const {
  const Shape pooled = out.type(out.output(0)).shape;
  const Shape images = out.input_type(0).shape;
  dispatch_pool(out, name(), pool_, images, pooled, pooled, loop_rounds(largest_window(pool_, images, pooled)),
                lanes());
}

}  // namespace halfstep::ops
