#include "ops/gemm/gemm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/beyond_limit.h"
#include "graph/dtype.h"
#include "ops/columns.h"
#include "ops/elementwise/cast.h"
#include "ops/gemm/gemm_choice.h"
#include "ops/gemm/gemm_kernels.h"
#include "ops/gemm/gemm_panels.h"
#include "ops/gemm/winograd.h"
#include "ops/kernel.h"
#include "ops/reduce/reduce.h"

namespace halfstep::ops {
namespace {

/// The push constants of gemm.comp; shaders/gemm/gemm.glsl documents each.
struct GemmPush {
  std::int32_t rows, columns, k, segments;
  std::int32_t splits, split_quads, groups;
  std::int32_t a_pitch, b_pitch, c_pitch;
  std::int32_t a_batch, b_batch, c_batch, c_split;
  std::int32_t channels, kernel_width;
  std::int32_t grid[2], image[2], stride[2], tap_step[2], offset[2], result[2];
};
static_assert(sizeof(GemmPush) == 112);

std::int64_t segment_quads(const Gemm& gemm) {
  return plan::divided_up(gemm.k, 4);
}

std::int64_t k_quads(const Gemm& gemm) {
  return tile_segments(gemm) * segment_quads(gemm);
}

/// How the work is split.
struct Cut {
  std::int64_t row_tiles;
  std::int64_t column_tiles;
  std::int64_t splits;
  std::int64_t split_quads;
};

/// The stored type of C for a part of k, with the column sums as the last row.
TensorType part_type(const plan::Lowering& out, const Gemm& gemm) {
  const Shape& shape = out.type(gemm.c).shape;
  return {DType::f32, {elements(shape) / shape.back() + (gemm.column_sums ? 1 : 0), shape.back()}};
}

/// The most memory that partial results take to occupy a device.
constexpr std::int64_t most_part_bytes = std::int64_t{1} << 27;

/// How many parts k makes if a core's cache is to keep what the kernel reads again for the next tile: a panel of B, or
/// operands that are not packed. Of these fewer where storing and adding up that many C, of `bytes` each, would cost
/// more than reading the operands once.
std::int64_t cached_parts(const plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel, std::int64_t bytes) {
  constexpr std::int64_t cache_bytes = std::int64_t{1} << 19;
  constexpr std::int64_t quad_bytes = 16;
  if (kernel.panels || kernel.b_pitch > 0) {
    const std::int64_t columns = kernel.panels ? kernel.tile_columns : 4 * kernel.b_pitch;
    const std::int64_t panel_bytes = k_quads(gemm) * columns * quad_bytes;
    return panel_bytes < 2 * cache_bytes ? 1 : plan::divided_up(panel_bytes, cache_bytes);
  }
  if (kernel.row_group == 0) return 1;
  const auto bytes_of = [&](plan::TensorId tensor) {
    return static_cast<std::int64_t>(plan::byte_size(out.type(tensor)));
  };
  const std::int64_t read = bytes_of(gemm.a) + bytes_of(gemm.b);
  return std::min(plan::divided_up(read, cache_bytes), read / (4 * bytes));
}

/// k is split if there are too few tiles to occupy the device, for the caches of a software driver, or if its sums
/// would be long, but into parts of at least `least_part_quads`, and only as far as `most_part_bytes` allow. Parts are
/// short enough for the driver's limit of loop rounds.
Cut cut(const plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel) {
  Cut result{row_tiles(kernel, gemm), plan::divided_up(gemm.columns, kernel.tile_columns), 1, k_quads(gemm)};
  const std::int64_t tiles = result.row_tiles * result.column_tiles * gemm.batches;
  const auto bytes = static_cast<std::int64_t>(plan::byte_size(part_type(out, gemm)));
  const std::int64_t most = std::min(most_part_bytes / bytes, k_quads(gemm) / least_part_quads);
  const std::int64_t occupying = std::min(plan::divided_up(out.target().wanted_groups, tiles), most);
  const std::int64_t least =
      plan::divided_up(k_quads(gemm), most_part_quads(out.target(), kernel, segment_quads(gemm)));
  const std::int64_t caching = std::min(most, cached_parts(out, gemm, kernel, bytes));
  const std::int64_t exact = std::min(most, plan::divided_up(k_quads(gemm) * 4, longest_sum));
  const std::int64_t wanted = std::max({occupying, least, caching, exact});
  if (wanted < 2) return result;
  result.split_quads = plan::divided_up(plan::divided_up(k_quads(gemm), wanted), kernel.k_quads) * kernel.k_quads;
  result.splits = plan::divided_up(k_quads(gemm), result.split_quads);
  return result;
}

/// How a GEMM is computed.
struct Way {
  const GemmKernel& kernel;
  Cut cut;
  DType storage;  ///< that its kernels are for
};

/// Writes sizes into push constants.
class Sizes {
 public:
  explicit Sizes(const plan::Lowering& out) : out_(out) {}

  std::int32_t operator()(std::int64_t value) const {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (value <= most && value >= -most) return static_cast<std::int32_t>(value);
    fail_beyond_limit(out_.label(), fmt::format("expected sizes below 2^31, got {}", value), "use a smaller batch");
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
  size(push.result, gemm.patches.result);
  return push;
}

/// Every index that the shader computes must fit in 31 bits.
void expect_indexable(const plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel, const Cut& cut) {
  const Sizes size(out);
  for (const plan::TensorId tensor : {gemm.a, gemm.b}) size(plan::layout(out.type(tensor).shape).quads());
  size(plan::layout(out.type(gemm.c).shape).quads() * cut.splits);
  size((cut.row_tiles + 1) * kernel.tile_rows);
  size((cut.column_tiles + 1) * kernel.tile_columns);
  size(k_quads(gemm) * 4);
}

/// Elements of a quad of A that are not padding.
std::uint32_t quad_elements(const Gemm& gemm) {
  const bool of_rows = gemm.operands == Operands::col_row || gemm.operands == Operands::col_col;
  const std::int64_t elements = gemm.operands == Operands::pixels_row ? gemm.patches.channels : gemm.k;
  return of_rows ? 4 : static_cast<std::uint32_t>(std::min<std::int64_t>(elements, 4));
}

/// Which operands' quads may be read in pairs: bit 0 for A, bit 1 for B. Those of 16-bit elements, whose rows and
/// batches begin at even quads, and of which there is an even number in the direction that a quad lies in.
std::uint32_t pairs(const plan::Lowering& out, const Gemm& gemm) {
  if (!is_narrow(out.type(gemm.a).dtype)) return 0;
  const auto even = [](std::int64_t value) { return value % 2 == 0; };
  const auto quads = [](std::int64_t elements) { return plan::divided_up(elements, 4); };
  const std::int64_t a_length = a_lies_along_k(gemm.operands)           ? gemm.k
                                : gemm.operands == Operands::pixels_row ? gemm.patches.channels
                                                                        : gemm.rows;
  const std::int64_t b_length = b_lies_along_k(gemm.operands) ? gemm.k : gemm.columns;
  const bool a = even(row_quads(out, gemm.a)) && even(gemm.a_batch) && even(quads(a_length));
  const bool b = even(row_quads(out, gemm.b)) && even(gemm.b_batch) && even(quads(b_length));
  return (a ? 1U : 0U) | (b ? 2U : 0U);
}

/// What the binding `edge` is used for; numbered as in shaders/gemm/gemm.glsl.
enum class Edge : std::uint8_t { none, bias, sums, sums_in_c, moments, moments_of_f32 };

/// The additional input or output of a GEMM and its operand. Without one, the operand of B or of the parts is bound in
/// its place.
struct EdgeOperand {
  Edge edge = Edge::none;
  plan::Operand operand;
};

EdgeOperand edge_of(const Gemm& gemm, plan::TensorId other) {
  if (gemm.bias) return {Edge::bias, {*gemm.bias, plan::Access::read}};
  if (gemm.column_sums) return {Edge::sums, {*gemm.column_sums, plan::Access::write}};
  return {Edge::none, {other, plan::Access::read}};
}

/// The edge of a product that also outputs the moments of its columns, where an operator that follows asks for them;
/// else `edge`. Nothing else may come with the product then, and none of its rows may be padding.
EdgeOperand with_moments(plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel, const EdgeOperand& edge) {
  const Shape shape = out.type(gemm.c).shape;
  const bool can = out.target().fusion && edge.edge == Edge::none && gemm.batches == 1 && !gemm.patches.divided() &&
                   (gemm.operands != Operands::pixels_row || gemm.patches.channels % 4 == 0) &&
                   kernel.moment_rows > 0 && gemm.c == out.output(0) && out.moments_wanted();
  if (!can) return edge;
  const std::int64_t parts = plan::divided_up(elements(shape) / shape.back(), kernel.moment_rows);
  const plan::TensorId moments = out.workspace("moments", {DType::f32, {1, parts, 2, shape.back()}});
  out.provide_moments(gemm.c, {moments, kernel.moment_rows});
  return {is_narrow(out.type(gemm.c).dtype) ? Edge::moments : Edge::moments_of_f32, {moments, plan::Access::write}};
}

/// Loop rounds of the search for a phase's first tap, in both axes.
std::int64_t search_rounds(const Gemm& gemm) {
  if (!gemm.patches.divided()) return 0;
  const Pair stride = gemm.patches.tap_stride();
  const std::int64_t width = gemm.patches.kernel_width;
  return std::min(stride[0], gemm.segments / width) + std::min(stride[1], width) + 2;
}

/// How many phases share the taps out.
double phases(const Gemm& gemm) {
  return static_cast<double>(gemm.patches.divisor[0] * gemm.patches.divisor[1]);
}

/// The constants of that name; 0 where A's rows are not in phases.
std::array<std::uint32_t, 2> tap_strides(const Gemm& gemm) {
  if (!gemm.patches.divided()) return {};
  const Pair stride = gemm.patches.tap_stride();
  return {static_cast<std::uint32_t>(stride[0]), static_cast<std::uint32_t>(stride[1])};
}

void dispatch_product(plan::Lowering& out, const Gemm& gemm, const Way& way, const EdgeOperand& edge) {
  const GemmKernel& kernel = way.kernel;
  const GemmPush push = push_constants(out, gemm, way.cut);
  const std::int64_t results = elements(out.type(gemm.c).shape) / way.cut.splits;
  const auto tap_stride = tap_strides(gemm);
  std::vector<std::uint32_t> constants{kernel.local_size,
                                       static_cast<std::uint32_t>(edge.edge),
                                       gemm.partials == DType::f16,
                                       tap_stride[0],
                                       quad_elements(gemm),
                                       pairs(out, gemm),
                                       tap_stride[1],
                                       gemm.k % 4 == 0};
  constants.insert(constants.end(), kernel.constants.begin(), kernel.constants.end());
  if (kernel.may_be_full) constants.push_back(push.groups <= std::int64_t{out.target().max_groups[0]});
  plan::Expression expression = result_expression(out, gemm.c, 2, 4);
  expression.storage = way.storage;
  expression.noise = false;
  expression.rows_known = true;
  out.dispatch(
      {.label = {},
       .shader = kernel.shader,
       .constants = std::move(constants),
       .push = plan::push_bytes(push),
       .push_is_known = is_of_images(gemm.operands),
       .operands = {{gemm.a, plan::Access::read, kernel.texels, kernel.uniform},
                    {gemm.b, plan::Access::read, kernel.texels, kernel.uniform},
                    {gemm.c, plan::Access::write},
                    edge.operand},
       .groups = plan::groups_for(out.target(), std::int64_t{push.groups} * kernel.local_size, kernel.local_size),
       .rounds = part_rounds(kernel, way.cut.split_quads, segment_quads(gemm)) + search_rounds(gemm),
       .expression = std::move(expression),
       .matrices = kernel.matrices,
       .flops = 2.0 * static_cast<double>(results) * static_cast<double>(gemm.k * gemm.segments) / phases(gemm)});
}

/// The product with operands as the kernel reads them.
Gemm prepared(plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel) {
  if (kernel.panels || kernel.planes) return lower_panels(out, gemm, kernel);
  Gemm result = gemm;
  if (kernel.uniform) result.a = in_f32(out, gemm.a);
  if (kernel.uniform) result.b = in_f32(out, gemm.b);
  return result;
}

/// Reduces parts {n, ...} to one, if there are too many for one loop.
plan::TensorId sum_of_parts(plan::Lowering& out, plan::TensorId parts) {
  Shape shape = out.type(parts).shape;
  std::vector<bool> summed(shape.size(), false);
  summed.front() = true;
  shape.front() = 1;
  const plan::TensorId sum = out.workspace("parts", {DType::f32, shape});
  lower_sum(out, parts, summed, sum, 1);
  return sum;
}

/// How the sum of `splits` parts of k is distributed. On a GPU, where each round of a loop waits for memory, lanes
/// share the parts, unless each sum is to be rounded.
ColumnSpread spread_of_parts(const plan::Target& target, std::int64_t part_quads, std::int64_t splits, DType partials) {
  if (!plan::waits_for_memory(target) || partials == DType::f16) return {.local_size = plan::flat_local_size(target)};
  ColumnSpread spread = spread_columns(target, part_quads, splits, 16, 4);
  if (spread.parts > 1) spread.terms = 0;  // all of them in one dispatch
  return spread;
}

/// Sums parts {n, ...} into `to` and into the output of `edge`, in order.
void reduce_parts(plan::Lowering& out, plan::TensorId parts, plan::TensorId to, DType partials,
                  const EdgeOperand& edge) {
  struct Push {
    std::int32_t quads, part_quads, splits, pitch;
  };
  const Sizes size(out);
  const plan::Layout layout = plan::layout(out.type(to).shape);
  const std::int64_t splits = out.type(parts).shape.front();
  if (splits > out.target().max_rounds) return reduce_parts(out, sum_of_parts(out, parts), to, partials, edge);
  const std::int64_t part_quads = plan::layout(out.type(parts).shape).quads() / splits;
  const DType edge_type = edge.edge == Edge::none ? DType::f32 : out.type(edge.operand.tensor).dtype;
  const DType storage = is_narrow(edge_type) ? edge_type : out.type(to).dtype;
  const Push push{size(layout.quads()), size(part_quads), size(splits), size(layout.quads_per_row())};
  plan::Expression expression = result_expression(out, to, 1, 3);
  expression.storage = storage;
  const ColumnSpread spread = spread_of_parts(out.target(), part_quads, splits, partials);
  out.dispatch({.label = {},
                .shader = fmt::format("gemm_reduce.{}", graph::info(storage).words),
                .constants = {spread.local_size, static_cast<std::uint32_t>(edge.edge), partials == DType::f16, 0,
                              spread.lanes, spread.together, spread.terms},
                .push = plan::push_bytes(push),
                .operands = {{parts, plan::Access::read}, {to, plan::Access::write}, edge.operand},
                .groups = spread.groups(out.target(), 1, part_quads),
                .rounds = plan::divided_up(splits, spread.lanes) + spread.rounds(),
                .expression = std::move(expression)});
}

/// The GEMM in one or more parts of k, and their sum.
void lower_in_parts(plan::Lowering& out, const Gemm& gemm, const Gemm& product, const Way& way) {
  TensorType type = part_type(out, gemm);
  type.shape.insert(type.shape.begin(), way.cut.splits);
  Gemm parts = product;
  parts.c = out.workspace("parts", std::move(type));
  const Edge inside = gemm.column_sums ? Edge::sums_in_c : Edge::none;
  dispatch_product(out, parts, way, {inside, {parts.b, plan::Access::read}});
  reduce_parts(out, parts.c, gemm.c, gemm.partials, edge_of(gemm, parts.c));
}

/// Whether a GEMM can also sum the columns of B: not with f16 accumulators, and not if results are rounded
/// stochastically: noise is keyed on places, and those of the sums are others than where they are summed alone.
bool sums_columns(const plan::Lowering& out, const Gemm& gemm) {
  return out.target().fusion && gemm.partials == DType::f32 && !out.storing().stochastic;
}

void lower_columns_apart(plan::Lowering& out, Gemm gemm) {
  const plan::TensorId sums = *std::exchange(gemm.column_sums, {});
  lower_gemm(out, gemm);
  lower_column_sums(out, gemm.b, sums);
}

}  // namespace

Pair Patches::phases() const {
  return {std::min(divisor[0], result[0]), std::min(divisor[1], result[1])};
}

Pair Patches::tap_stride() const {
  return {divisor[0] / std::gcd(divisor[0], tap_step[0]), divisor[1] / std::gcd(divisor[1], tap_step[1])};
}

std::int64_t tile_segments(const Gemm& gemm) {
  if (!gemm.patches.divided()) return gemm.segments;
  const Pair stride = gemm.patches.tap_stride();
  const std::int64_t width = gemm.patches.kernel_width;
  return plan::divided_up(gemm.segments / width, stride[0]) * plan::divided_up(width, stride[1]);
}

std::int64_t rows_of_a(const Gemm& gemm) {
  return gemm.column_sums ? plan::divided_up(gemm.rows, 4) * 4 + 1 : gemm.rows;
}

void lower_sum_of_parts(plan::Lowering& out, plan::TensorId parts, plan::TensorId to, DType partials) {
  reduce_parts(out, parts, to, partials, {Edge::none, {parts, plan::Access::read}});
}

void lower_gemm(plan::Lowering& out, const Gemm& gemm) {
  if (gemm.column_sums && !sums_columns(out, gemm)) return lower_columns_apart(out, gemm);
  if (gemm.column_sums) out.count_unfused(column_sum_dispatches(out, gemm.b));
  const Problem size = problem(out, gemm);
  const std::vector<GemmKernel> candidates = gemm_kernels(out.target(), size);
  const GemmKernel& kernel = candidates[out.choose(gemm_choice(out, gemm, size, candidates))];
  if (kernel.winograd) return lower_winograd(out, gemm);
  const Gemm product = prepared(out, gemm, kernel);
  const Way way{kernel, cut(out, product, kernel), size.dtype};
  expect_indexable(out, product, kernel, way.cut);
  // Noise is drawn by gemm_reduce, so that the products' code stays small.
  const bool rounds_at_random = out.storing().stochastic && is_narrow(out.type(gemm.c).dtype);
  if (way.cut.splits > 1 || rounds_at_random) return lower_in_parts(out, gemm, product, way);
  dispatch_product(out, product, way, with_moments(out, product, kernel, edge_of(product, product.b)));
}

}  // namespace halfstep::ops
