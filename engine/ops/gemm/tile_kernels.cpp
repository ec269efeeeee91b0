#include "ops/gemm/tile_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "ops/gemm/subgroup_kernels.h"

namespace halfstep::ops {
namespace {

/// Shared memory of gemm_tile.glsl, in bytes: for A and B each, 16 k of a tile's side plus one quad.
std::uint32_t shared_bytes(std::uint32_t tile, std::uint32_t quad_bytes) {
  return 2 * 16 * (tile / 4 + 1) * quad_bytes;
}

/// Counts the loop rounds of a kernel that fetches `step_quads` of k at a time with gemm_stage.glsl, multiplies them in
/// `products` rounds and stores its results in `stores`. The loads of a step, and the pixels that they are at, are
/// loops that most drivers unroll.
void count_stage_rounds(GemmKernel& kernel, std::int64_t quads, std::int64_t products, std::int64_t stores) {
  const std::int64_t loads = kernel.tile_rows * quads / kernel.local_size;
  const std::int64_t fetch = 3 * (loads + 1);
  kernel.k_quads = quads;
  kernel.quad_rounds = plan::divided_up(1 + products + fetch, quads);
  kernel.segment_rounds = 0;
  kernel.other_rounds = fetch + stores;
}

/// How tiles in shared memory compute: in f32; in f32 from pairs of f16, two k at a time; in f16.
enum class Arithmetic : std::uint8_t { singles, dots, halves };

/// Tiles in shared memory, if the device has enough. See gemm_tile.glsl for the threads. Those that sum in f16 cannot
/// output moments.
std::vector<GemmKernel> tiles(const plan::Target& target, const Problem& problem, Arithmetic arithmetic) {
  constexpr std::array<std::string_view, 3> kinds{"tile", "dots", "half"};
  const std::string_view kind = kinds[static_cast<std::size_t>(arithmetic)];
  const bool halves = arithmetic == Arithmetic::halves;
  std::vector<GemmKernel> found;
  for (const auto& [tile, threads] : {std::pair{128U, 256U}, {64U, 128U}, {32U, 64U}}) {
    const std::uint32_t bytes = shared_bytes(tile, halves ? 8 : 16);
    if (threads > target.max_invocations || bytes > target.shared_memory_bytes) continue;
    GemmKernel kernel = plain(problem, fmt::format("{}{}", kind, tile), threads, tile, tile);
    if (arithmetic != Arithmetic::singles) {
      kernel.shader = fmt::format("gemm_{}.{}.{}", kind, name(problem.operands), tile);
    }
    if (halves) kernel.moment_rows = 0;
    // For 8 by 8, 8 by 4 or 4 by 4 results per invocation, and the column moments of all below each other.
    const std::int64_t rows = tile == 32 ? 4 : 8;
    count_stage_rounds(kernel, arithmetic == Arithmetic::dots ? 8 : 4, 17,
                       (tile == 128 ? 2 : 1) * (rows + 1) + tile / rows + 1);
    found.push_back(std::move(kernel));
  }
  return found;
}

/// Shared memory of gemm_cooperative.glsl, in bytes: for operands, `step` quads of k at a time, in lines along or
/// across k, and in the end for results.
std::uint32_t shared_bytes(const plan::MatrixShape& shape, std::uint32_t tile, std::uint32_t side, std::uint32_t step) {
  const std::uint32_t packed = shape.type == plan::MatrixType::float8 ? 2 : 1;  // quads in 8 bytes
  const std::uint32_t operand = std::max(tile * (step / packed + 2), 4 * step * (tile / 4 / packed + 2)) * 8;
  const std::uint32_t band = shape.rows * (tile / side + 4) * 4;  // of a subgroup
  return std::max(2 * operand, side * side * band);
}

/// The same, with operands transposed so that both lie along k; nothing if invocations load too little for that.
std::optional<GemmKernel> transposing(GemmKernel kernel) {
  const std::int64_t loads = kernel.tile_rows * kernel.k_quads / kernel.local_size;
  if (kernel.matrices == plan::MatrixType::float8 && loads < 4) return std::nullopt;
  kernel.name += ".transposing";
  kernel.constants[3] = 1;
  return kernel;
}

bool are_along_k(Operands operands) {
  return operands == Operands::row_col || operands == Operands::patches_col;
}

/// Whether each row and column of a fragment begins at a multiple of 8 bytes where elements have one.
bool holds_eights(const plan::MatrixShape& shape) {
  return shape.rows % 8 == 0 && shape.columns % 8 == 0 && shape.k % 8 == 0;
}

/// A tile on matrix units that goes over k in steps of `step` quads, if the device has what that takes.
std::optional<GemmKernel> cooperative(const plan::Target& target, const Problem& problem,
                                      const plan::MatrixShape& shape, std::uint32_t tile, std::uint32_t step) {
  const std::uint32_t side = tile == 32 ? 1 : 2;
  const std::uint32_t square = tile / side;
  const std::uint32_t threads = side * side * target.subgroups.size;
  const bool fits = square % shape.rows == 0 && square % shape.columns == 0 && 4 * step % shape.k == 0 &&
                    shape.rows % 4 == 0 && shape.columns % 4 == 0 && threads % step == 0 &&
                    threads <= target.max_invocations && tile * step / threads >= 2 &&
                    (shape.type != plan::MatrixType::float8 || holds_eights(shape)) &&
                    shared_bytes(shape, tile, side, step) <= target.shared_memory_bytes;
  if (!fits) return std::nullopt;
  GemmKernel kernel;
  const std::string_view type = shape.type == plan::MatrixType::float8 ? ".float8" : "";
  kernel.name = fmt::format("cooperative{}.{}x{}x{}{}", tile, shape.rows, shape.columns, shape.k, type);
  if (step != 8) kernel.name += fmt::format(".step{}", 4 * step);
  kernel.shader = fmt::format("gemm_cooperative.{}.{}", name(problem.operands), shape.float16_sums ? "f16" : "f32");
  kernel.matrices = shape.type;
  kernel.local_size = threads;
  kernel.tile_rows = tile;
  kernel.tile_columns = tile;
  kernel.risky = true;
  if (target.subgroups.size % (square / 4) == 0) kernel.moment_rows = square;
  // Each band of fragments is stored in its own loop, and moments are merged across the subgroup.
  const std::int64_t bands = square / shape.rows;
  const std::int64_t band_rounds = plan::divided_up(shape.rows * square / 4, target.subgroups.size);
  count_stage_rounds(kernel, step, 4 * step / shape.k + 1, bands * (band_rounds + 2) + 10);
  kernel.constants = {shape.rows, shape.columns, shape.k, 0, tile, step};
  return kernel;
}

/// What matrix units may take the factors of `problem` as, the fastest first.
std::vector<plan::MatrixType> types_of(const Problem& problem) {
  if (problem.float8) return {plan::MatrixType::float8, plan::MatrixType::float16};
  if (problem.dtype == DType::f16) return {plan::MatrixType::float16};
  if (problem.dtype == DType::bf16) return {plan::MatrixType::bfloat16};
  return {};
}

/// The shapes of fragments that matrix units multiply for `problem`, those with the most products at once first.
std::vector<plan::MatrixShape> fragments(const plan::Target& target, const Problem& problem, plan::MatrixType type) {
  std::vector<plan::MatrixShape> found;
  std::ranges::copy_if(target.matrix_shapes, std::back_inserter(found), [&](const plan::MatrixShape& shape) {
    return shape.type == type && shape.float16_sums == problem.float16_partials;
  });
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const plan::MatrixShape& shape) { return shape.rows * shape.columns * shape.k; });
  return found;
}

/// Those that multiply such fragments.
void add_matrix_tiles(std::vector<GemmKernel>& found, const plan::Target& target, const Problem& problem,
                      const std::vector<plan::MatrixShape>& shapes) {
  const bool both_ways = !are_along_k(problem.operands);
  std::array<std::uint32_t, 2> steps{16, 8};
  if (problem.segments * plan::divided_up(problem.k, 4) <= steps[1]) std::ranges::reverse(steps);
  for (const std::uint32_t tile : {128U, 64U, 32U}) {
    for (const std::uint32_t step : steps) {
      std::optional<GemmKernel> kernel;
      for (auto shape = shapes.begin(); !kernel && shape != shapes.end(); ++shape)
        kernel = cooperative(target, problem, *shape, tile, step);
      if (!kernel) continue;
      const std::optional<GemmKernel> along_k = both_ways ? transposing(*kernel) : std::nullopt;
      if (along_k && target.matrices_along_k) found.push_back(*along_k);
      found.push_back(*kernel);
      if (along_k && !target.matrices_along_k) found.push_back(*along_k);
    }
  }
}

}  // namespace

std::vector<GemmKernel> plain_tiles(const plan::Target& target, const Problem& problem) {
  return tiles(target, problem, Arithmetic::singles);
}

std::vector<GemmKernel> half_tiles(const plan::Target& target, const Problem& problem) {
  const bool can = target.float16.arithmetic && problem.dtype == DType::f16 && problem.float16_partials;
  return can ? tiles(target, problem, Arithmetic::halves) : std::vector<GemmKernel>{};
}

std::vector<GemmKernel> dot_tiles(const plan::Target& target, const Problem& problem) {
  const bool wanted = target.float16.dots || target.gemm_kernels.starts_with("dots");
  const bool can = problem.dtype == DType::f16 && !problem.float16_partials;
  return wanted && can ? tiles(target, problem, Arithmetic::dots) : std::vector<GemmKernel>{};
}

std::vector<GemmKernel> matrix_tiles(const plan::Target& target, const Problem& problem) {
  std::vector<GemmKernel> found;
  if (target.subgroups.size == 0 || !target.subgroups.shuffle) return found;
  for (const plan::MatrixType type : types_of(problem))
    add_matrix_tiles(found, target, problem, fragments(target, problem, type));
  return found;
}

}  // namespace halfstep::ops
