#include "ops/gemm.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "ops/gemm_bodies.h"
#include "ops/gemm_choice.h"
#include "ops/gemm_panels.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

/// The push constants of gemm.comp; see shaders/common/gemm.glsl for what each is.
struct GemmPush {
  std::int32_t rows, columns, k, segments;
  std::int32_t row_tiles, column_tiles, splits, split_quads, groups;
  std::int32_t a_pitch, b_pitch, c_pitch;
  std::int32_t a_batch, b_batch, c_batch, c_split;
  std::int32_t channels, kernel_width;
  std::int32_t grid[2], image[2], stride[2], tap_step[2], offset[2];
};
static_assert(sizeof(GemmPush) == 112);

std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t k_quads(const Gemm& gemm) {
  return gemm.segments * divided_up(gemm.k, 4);
}

/// How the work is cut up.
struct Cut {
  std::int64_t row_tiles;
  std::int64_t column_tiles;
  std::int64_t splits;
  std::int64_t split_quads;
};

/// k is cut into parts where there are too few tiles for the device, but not into parts of less than 64 elements, and
/// no further than one binding can hold the partial results.
Cut cut(const plan::Lowering& out, const Gemm& gemm, const Body& body) {
  constexpr std::int64_t least_quads = 16;
  Cut result{divided_up(gemm.rows, body.tile_rows), divided_up(gemm.columns, body.tile_columns), 1, k_quads(gemm)};
  const std::int64_t tiles = result.row_tiles * result.column_tiles * gemm.batches;
  const auto bytes = static_cast<std::int64_t>(plan::byte_size({DType::f32, out.type(gemm.c).shape}));
  const std::int64_t most =
      std::min(static_cast<std::int64_t>(out.target().max_storage_range) / bytes, k_quads(gemm) / least_quads);
  const std::int64_t wanted = std::min(divided_up(out.target().wanted_groups, tiles), most);
  if (wanted < 2) return result;
  result.split_quads = divided_up(divided_up(k_quads(gemm), wanted), body.k_quads) * body.k_quads;
  result.splits = divided_up(k_quads(gemm), result.split_quads);
  return result;
}

/// Writes sizes into push constants.
class Sizes {
 public:
  explicit Sizes(const plan::Lowering& out) : out_(out) {}

  std::int32_t operator()(std::int64_t value) const {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (value <= most && value >= -most) return static_cast<std::int32_t>(value);
    fail(out_.label(), fmt::format("expected sizes below 2^31, got {}", value), "use a smaller batch");
  }

  void operator()(std::int32_t (&to)[2], const Pair& pair) const {
    to[0] = (*this)(pair[0]);
    to[1] = (*this)(pair[1]);
  }

 private:
  const plan::Lowering& out_;
};

std::int64_t row_quads(const plan::Lowering& out, plan::TensorId tensor) {
  return plan::layout(out.type(tensor).shape).quads_per_row();
}

GemmPush push_constants(const plan::Lowering& out, const Gemm& gemm, const Cut& cut) {
  const Sizes size(out);
  GemmPush push{};
  push.rows = size(gemm.rows);
  push.columns = size(gemm.columns);
  push.k = size(gemm.k);
  push.segments = size(gemm.segments);
  push.row_tiles = size(cut.row_tiles);
  push.column_tiles = size(cut.column_tiles);
  push.splits = size(cut.splits);
  push.split_quads = size(cut.split_quads);
  push.groups = size(cut.row_tiles * cut.column_tiles * cut.splits * gemm.batches);
  push.a_pitch = size(row_quads(out, gemm.a));
  push.b_pitch = size(row_quads(out, gemm.b));
  push.c_pitch = size(row_quads(out, gemm.c));
  push.a_batch = size(gemm.a_batch);
  push.b_batch = size(gemm.b_batch);
  push.c_batch = size(gemm.c_batch);
  push.c_split = size(plan::layout(out.type(gemm.c).shape).quads() / cut.splits);
  push.channels = size(gemm.patches.channels);
  push.kernel_width = size(gemm.patches.kernel_width);
  size(push.grid, gemm.patches.grid);
  size(push.image, gemm.patches.image);
  size(push.stride, gemm.patches.divided() ? gemm.patches.divisor : gemm.patches.step);
  size(push.tap_step, gemm.patches.tap_step);
  size(push.offset, gemm.patches.offset);
  return push;
}

/// Every index that the shader works out must fit in 31 bits.
void expect_indexable(const plan::Lowering& out, const Gemm& gemm, const Body& body, const Cut& cut) {
  const Sizes size(out);
  for (const plan::TensorId tensor : {gemm.a, gemm.b}) size(plan::layout(out.type(tensor).shape).quads());
  size(plan::layout(out.type(gemm.c).shape).quads() * cut.splits);
  size((cut.row_tiles + 1) * body.tile_rows);
  size((cut.column_tiles + 1) * body.tile_columns);
  size(k_quads(gemm) * 4);
}

/// Elements of a quad of A that are not padding.
std::uint32_t quad_elements(const Gemm& gemm) {
  const bool of_rows = gemm.operands == Operands::col_row || gemm.operands == Operands::col_col;
  const std::int64_t elements = gemm.operands == Operands::pixels_row ? gemm.patches.channels : gemm.k;
  return of_rows ? 4 : static_cast<std::uint32_t>(std::min<std::int64_t>(elements, 4));
}

/// What becomes of the numbers that a kernel computes for `result`; `halves` is Expression's.
plan::Expression stored(const plan::Lowering& out, plan::TensorId result, bool halves) {
  plan::Expression expression;
  expression.kernel = plan::Expression::Kernel::before;
  expression.layout = plan::layout(out.type(result).shape);
  expression.halves = halves;
  return expression;
}

void dispatch_product(plan::Lowering& out, const Gemm& gemm, const Body& body, const Cut& cut, bool halves) {
  const GemmPush push = push_constants(out, gemm, cut);
  const bool divided = gemm.patches.divided();
  const std::int64_t results = elements(out.type(gemm.c).shape) / cut.splits;
  std::vector<std::uint32_t> constants{body.local_size, gemm.bias.has_value(), gemm.partials == DType::f16, divided,
                                       quad_elements(gemm)};
  constants.insert(constants.end(), body.constants.begin(), body.constants.end());
  // Without a bias B takes its binding, and is not read there.
  const plan::TensorId bias = gemm.bias.value_or(gemm.b);
  plan::Expression expression = stored(out, gemm.c, halves);
  expression.result = 2;
  expression.first_slot = 4;
  expression.noise = false;
  expression.rows_known = true;
  out.dispatch({.label = {},
                .shader = body.shader,
                .constants = std::move(constants),
                .push = plan::push_bytes(push),
                .operands = {{gemm.a, plan::Access::read, body.texels, body.uniform},
                             {gemm.b, plan::Access::read, body.texels, body.uniform},
                             {gemm.c, plan::Access::write},
                             {bias, plan::Access::read}},
                .groups = plan::groups_for(std::int64_t{push.groups} * body.local_size, body.local_size),
                .expression = std::move(expression),
                .flops = 2.0 * static_cast<double>(results) * static_cast<double>(gemm.k * gemm.segments)});
}

}  // namespace

void lower_sum_of_parts(plan::Lowering& out, plan::TensorId parts, plan::TensorId to, DType partials,
                        std::optional<plan::TensorId> bias) {
  struct Push {
    std::int32_t quads, splits, pitch;
  };
  const Sizes size(out);
  const plan::Layout layout = plan::layout(out.type(to).shape);
  const bool halves = out.type(bias.value_or(to)).dtype == DType::f16;
  const Push push{size(layout.quads()), size(out.type(parts).shape.front()), size(layout.quads_per_row())};
  plan::Expression expression = stored(out, to, halves);
  expression.result = 1;
  expression.first_slot = 3;
  const std::uint32_t local_size = plan::flat_local_size(out.target());
  out.dispatch(
      {.label = {},
       .shader = fmt::format("gemm_reduce.{}", halves ? "packed" : "f32"),
       .constants = {local_size, bias.has_value(), partials == DType::f16},
       .push = plan::push_bytes(push),
       .operands = {{parts, plan::Access::read}, {to, plan::Access::write}, {bias.value_or(parts), plan::Access::read}},
       .groups = plan::groups_for(layout.quads(), local_size),
       .expression = std::move(expression)});
}

void lower_gemm(plan::Lowering& out, const Gemm& gemm) {
  const Problem size = problem(out, gemm);
  const std::vector<Body> candidates = bodies(out.target(), size);
  const Body& body = candidates[out.choose(gemm_choice(out, gemm, size, candidates))];
  const Cut cuts = cut(out, gemm, body);
  expect_indexable(out, gemm, body, cuts);
  const Gemm product = body.uniform ? lower_panels(out, gemm) : gemm;
  const bool halves = size.dtype == DType::f16;
  // Noise is drawn by gemm_reduce, so that the products' code stays small.
  const bool rounds_at_random = out.storing().stochastic && out.type(gemm.c).dtype == DType::f16;
  if (cuts.splits == 1 && !rounds_at_random) return dispatch_product(out, product, body, cuts, halves);
  Shape shape = out.type(gemm.c).shape;
  shape.insert(shape.begin(), cuts.splits);
  Gemm parts = product;
  parts.bias.reset();
  parts.c = out.workspace("parts", {DType::f32, shape});
  dispatch_product(out, parts, body, cuts, halves);
  lower_sum_of_parts(out, parts.c, gemm.c, gemm.partials, gemm.bias);
}

}  // namespace halfstep::ops
