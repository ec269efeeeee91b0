#include "ops/gemm/uniform_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "ops/gemm/gemm_panels.h"

namespace halfstep::ops {
namespace {

bool has_uniform_loads(const plan::Target& target) {
  return target.uniform_loads && target.subgroups.shuffle && target.subgroups.size == 8;
}

/// The largest divisor of `value` that is at most `most`, and 1 at least.
std::int64_t largest_divisor(std::int64_t value, std::int64_t most) {
  std::int64_t divisor = std::max<std::int64_t>(most, 1);
  while (value % divisor != 0) --divisor;
  return divisor;
}

/// Quads of k that a kernel's loop adds at a time, at most.
constexpr std::int64_t most_step = 8;

GemmKernel by_address(const Problem& problem, std::string_view kind, Operands operands, std::int64_t tile_rows,
                      std::int64_t tile_columns) {
  const std::string tile = fmt::format("{}x{}", tile_rows, tile_columns);
  GemmKernel kernel;
  kernel.name = fmt::format("{}{}", kind, tile);
  kernel.shader = fmt::format("gemm_{}.{}.{}.{}", kind, name(operands), graph::info(problem.dtype).words, tile);
  kernel.local_size = 8;
  kernel.tile_rows = tile_rows;
  kernel.tile_columns = tile_columns;
  kernel.uniform = true;
  return kernel;
}

/// Whether so many quads of f32 are a tensor that has one address.
bool has_address(const plan::Target& target, std::int64_t quads) {
  const std::uint64_t elements = 4 * static_cast<std::uint64_t>(quads);
  return elements < plan::elements_end && (target.part_bytes == 0 || elements * sizeof(float) <= target.part_bytes);
}

/// Of the panels (ops/gemm/gemm_panels.h), too.
bool fits_panels(const plan::Target& target, const Problem& problem, std::int64_t panel_columns) {
  const std::int64_t columns = problem.batches * plan::divided_up(problem.columns, panel_columns) * panel_columns;
  const std::int64_t zeros = 4;  // at most this many columns' worth
  const std::int64_t panel_quads = (columns + zeros) * problem.segments * plan::divided_up(problem.k, 4);
  return has_address(target, std::max(panel_quads, problem.operand_quads));
}

GemmKernel in_panels(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns) {
  GemmKernel kernel = by_address(problem, "uniform", with_panels(problem.operands), tile_rows, tile_columns);
  kernel.panels = true;
  kernel.moment_rows = tile_rows;
  kernel.k_quads = largest_divisor(plan::divided_up(problem.k, 4), most_step);
  kernel.constants = {static_cast<std::uint32_t>(kernel.k_quads)};
  kernel.other_rounds = 6;
  return kernel;
}

/// Whether it is worth the preparation: packing B, which pays if enough rows use it, converting A, which pays if enough
/// columns do, and processing few quads of k at a time.
bool panels_pay(const plan::Target& target, const Problem& problem, const GemmKernel& kernel) {
  const std::int64_t tiles = problem.batches * plan::divided_up(problem.rows, kernel.tile_rows) *
                             plan::divided_up(problem.columns, kernel.tile_columns);
  const bool widened = is_narrow(problem.dtype);
  return kernel.k_quads > 2 && problem.rows >= 128 && problem.columns > (widened ? 16 : 8) &&
         tiles >= target.wanted_groups && (!widened || problem.columns * problem.segments >= 96);
}

/// With steps of whole segments, as many as are in a row, where those are short.
GemmKernel of_outer_products(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns) {
  GemmKernel kernel = by_address(problem, "outer", problem.operands, tile_rows, tile_columns);
  kernel.row_group = plan::divided_up(problem.tap_rows, 4) * 4;
  const std::int64_t length = plan::divided_up(problem.k, 4);
  const std::int64_t step = largest_divisor(length, most_step);
  const std::int64_t segments = step == length ? largest_divisor(problem.segments_in_row, most_step / step) : 1;
  kernel.k_quads = step * segments;
  kernel.constants = {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(segments)};
  kernel.other_rounds = 4;
  return kernel;
}

/// Where C is large, tiles read their operands again from memory, which are not packed. One channel fills a quarter of
/// a tile at most.
bool outer_products_pay(const Problem& problem) {
  const std::int64_t most_elements = std::int64_t{1} << 20;
  return !is_narrow(problem.dtype) && problem.tap_rows >= 3 && problem.rows * problem.columns < most_elements;
}

}  // namespace

UniformKernels uniform_kernels(const plan::Target& target, const Problem& problem) {
  UniformKernels found;
  const bool laid_out = problem.operands != Operands::pixels_row && !problem.float16_partials;
  if (!has_uniform_loads(target) || !laid_out || !fits_panels(target, problem, 32)) return found;
  found.kernels = {in_panels(problem, 6, 32), in_panels(problem, 12, 16)};
  if (problem.columns <= 16) std::ranges::reverse(found.kernels);
  found.pay = panels_pay(target, problem, found.kernels.front());
  return found;
}

UniformKernels outer_kernels(const plan::Target& target, const Problem& problem) {
  UniformKernels found;
  const bool across = problem.operands == Operands::col_row || problem.operands == Operands::pixels_row;
  // Where operands in f32 have no one address, or a row of B has no whole eights of columns, others must do.
  const bool fits = has_address(target, problem.operand_quads) && plan::divided_up(problem.columns, 4) % 2 == 0;
  if (!has_uniform_loads(target) || !across || !fits || problem.float16_partials) return found;
  found.kernels = {of_outer_products(problem, 8, 16), of_outer_products(problem, 4, 32)};
  found.pay = outer_products_pay(problem);
  return found;
}

}  // namespace halfstep::ops
