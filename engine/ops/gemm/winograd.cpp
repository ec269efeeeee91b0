#include "ops/gemm/winograd.h"

#include <algorithm>

#include "graph/dtype.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

constexpr std::int64_t tile_matrices = 16;

/// The most memory that the transformed images, and the products, may take: as much as parts of k may.
constexpr std::uint64_t most_matrix_bytes = std::uint64_t{1} << 27;

std::int64_t quads(std::int64_t elements) {
  return plan::divided_up(elements, 4);
}

bool is_3x3(const Gemm& gemm) {
  const Patches& patches = gemm.patches;
  const bool taps = gemm.operands == Operands::patches_row || gemm.operands == Operands::patches_col;
  const bool adjacent = patches.tap_step == Pair{1, 1} || patches.tap_step == Pair{-1, -1};
  return taps && adjacent && gemm.segments == 9 && patches.kernel_width == 3 && patches.step == Pair{1, 1} &&
         !patches.divided();
}

/// Whether the taps go through the image backwards, as a data gradient's do.
bool is_backward(const Gemm& gemm) {
  return gemm.patches.tap_step[0] < 0;
}

/// Of an image, in each axis.
Pair tiles_in_image(const Patches& patches) {
  return {plan::divided_up(patches.grid[0], 2), plan::divided_up(patches.grid[1], 2)};
}

/// Whether 16 matrices of so many quads are bound as a whole, and not too large. They have a workgroup for each quad,
/// which is more than any kernel takes.
bool fits(const plan::Target& target, std::int64_t matrix_quads) {
  const auto all = static_cast<std::uint64_t>(tile_matrices * matrix_quads);
  const std::uint64_t bytes = 16 * all;
  if (all > std::uint64_t{target.max_groups[0]} * target.max_groups[1]) return false;
  return bytes <= std::min(most_matrix_bytes, target.max_storage_range) &&
         (target.part_bytes == 0 || bytes <= target.part_bytes);
}

Operands operands_of_products(Operands operands) {
  return operands == Operands::patches_row ? Operands::row_row : Operands::row_col;
}

/// The push constants of winograd.comp, which documents each.
struct Push {
  std::uint32_t tiles[2] = {};
  std::uint32_t size[2] = {};
  std::int32_t offset[2] = {};
  std::uint32_t count = 0;
  std::uint32_t pitch = 0;
  std::uint32_t columns = 0;
};

/// Those for images of `size`, of which each pixel has `columns`.
Push push_of(const plan::Lowering& out, const Gemm& gemm, std::int64_t tiles, const Pair& size, std::int64_t columns) {
  Push push;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    push.tiles[axis] = index32(out, tiles_in_image(gemm.patches)[axis]);
    push.size[axis] = index32(out, size[axis]);
    // From the first tap, which is a data gradient's last, to the first pixel.
    push.offset[axis] = static_cast<std::int32_t>(gemm.patches.offset[axis] - (is_backward(gemm) ? 2 : 0));
  }
  push.count = index32(out, tiles * quads(columns));
  push.pitch = index32(out, quads(columns));
  push.columns = index32(out, columns);
  return push;
}

/// {16, tiles, channels}
plan::TensorId transformed_images(plan::Lowering& out, const Gemm& gemm, std::int64_t tiles) {
  const plan::TensorId result = out.workspace("transformed images", {DType::f32, {tile_matrices, tiles, gemm.k}});
  const Push push = push_of(out, gemm, tiles, gemm.patches.image, gemm.k);
  dispatch_flat(out, "winograd.images.f32", push.count, push,
                {{gemm.a, plan::Access::read}, {result, plan::Access::write}});
  return result;
}

/// 16 matrices of the shape that one tap's has.
plan::TensorId transformed_weight(plan::Lowering& out, const Gemm& gemm) {
  const Shape shape = out.type(gemm.b).shape;
  const plan::TensorId result = out.workspace("transformed weight", {DType::f32, {tile_matrices, shape[2], shape[3]}});
  Push push;
  push.count = index32(out, shape[2] * quads(shape[3]));
  dispatch_flat(out, "winograd.weight.f32", push.count, push,
                {{gemm.b, plan::Access::read}, {result, plan::Access::write}}, {0, is_backward(gemm) ? 1U : 0U});
  return result;
}

/// Stores the result of the products of all tiles, with the bias.
void store_result(plan::Lowering& out, const Gemm& gemm, std::int64_t tiles, plan::TensorId products) {
  const Push push = push_of(out, gemm, tiles, gemm.patches.grid, gemm.columns);
  plan::Expression expression = result_expression(out, gemm.c, 1, 3);
  expression.rows_known = true;
  const std::uint32_t local_size = plan::flat_local_size(out.target());
  out.dispatch({.label = {},
                .shader = "winograd.result.f32",
                .constants = {local_size, gemm.bias ? 1U : 0U},
                .push = plan::push_bytes(push),
                .operands = {{products, plan::Access::read},
                             {gemm.c, plan::Access::write},
                             {gemm.bias.value_or(products), plan::Access::read}},
                .groups = plan::groups_for(out.target(), push.count, local_size),
                .expression = std::move(expression)});
}

}  // namespace

std::int64_t winograd_tiles(const plan::Lowering& out, const Gemm& gemm) {
  const bool is_f32 = out.type(gemm.a).dtype == DType::f32 && out.type(gemm.c).dtype == DType::f32;
  const bool suits = is_3x3(gemm) && gemm.batches == 1 && is_f32 && gemm.partials == DType::f32;
  if (!suits || !out.target().winograd) return 0;
  const Pair& grid = gemm.patches.grid;
  const Pair in_image = tiles_in_image(gemm.patches);
  const std::int64_t tiles = gemm.rows / (grid[0] * grid[1]) * in_image[0] * in_image[1];
  const Shape weight = out.type(gemm.b).shape;
  const std::int64_t most =
      std::max({tiles * quads(gemm.k), tiles * quads(gemm.columns), weight[2] * quads(weight[3])});
  return fits(out.target(), most) ? tiles : 0;
}

Problem winograd_products(const Problem& problem) {
  Problem products = problem;
  products.operands = operands_of_products(problem.operands);
  products.rows = problem.winograd_tiles;
  products.segments = 1;
  products.batches = tile_matrices;
  products.operand_quads =
      tile_matrices * std::max(products.rows * quads(problem.k), problem.k * quads(problem.columns));
  products.tap_rows = products.rows;
  products.winograd_tiles = 0;
  return products;
}

double winograd_bytes(const Problem& problem) {
  const std::int64_t quads_of_both = quads(problem.k) + quads(problem.columns);
  const std::int64_t weight = (tile_matrices + problem.segments) * problem.k * quads(problem.columns);
  return 16 * static_cast<double>((tile_matrices * problem.winograd_tiles + problem.rows) * quads_of_both + weight);
}

GemmKernel winograd_kernel() {
  GemmKernel kernel;
  kernel.name = "winograd";
  kernel.winograd = true;
  return kernel;
}

bool winograd_pays(const plan::Target& target, const Problem& problem) {
  const std::int64_t products = problem.rows * problem.segments - problem.winograd_tiles * tile_matrices;
  const double saved = 2 * static_cast<double>(products * problem.k) * static_cast<double>(problem.columns);
  // Flops a byte: on lavapipe of Mesa 26, of Mesa 22, and where products are computed by lanes of 4, as on SwiftShader.
  const double least = target.uniform_loads ? 50 : target.subgroups.hand_over() ? 25 : 13;
  return target.subgroups.size > 0 && saved > least * winograd_bytes(problem);
}

void lower_winograd(plan::Lowering& out, const Gemm& gemm) {
  const std::int64_t tiles = winograd_tiles(out, gemm);
  Gemm products{.operands = operands_of_products(gemm.operands),
                .a = transformed_images(out, gemm, tiles),
                .b = transformed_weight(out, gemm),
                .c = out.workspace("products of tiles", {DType::f32, {tile_matrices, tiles, gemm.columns}}),
                .rows = tiles,
                .columns = gemm.columns,
                .k = gemm.k,
                .batches = tile_matrices};
  const auto batch = [&](plan::TensorId tensor) {
    return plan::layout(out.type(tensor).shape).quads() / tile_matrices;
  };
  products.a_batch = batch(products.a);
  products.b_batch = batch(products.b);
  products.c_batch = batch(products.c);
  lower_gemm(out, products);
  store_result(out, gemm, tiles, products.c);
}

}  // namespace halfstep::ops
