#include "ops/gemm/subgroup_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "graph/dtype.h"

namespace halfstep::ops {
namespace {

/// Register tiles of eight columns and at most 16 rows for each invocation of a subgroup, or 20 where A does not lie
/// along k; the number of rows divides the problem's rows most evenly.
GemmKernel thin(const Problem& problem, std::string_view body, std::uint32_t lanes) {
  const bool along_k = a_lies_along_k(problem.operands);
  const std::int64_t least = along_k ? lanes : 4 * lanes;
  const std::int64_t most = (along_k ? 16 : 20) * lanes;
  const std::int64_t tile_rows =
      plan::divided_up(plan::divided_up(problem.rows, plan::divided_up(problem.rows, most)), least) * least;
  GemmKernel kernel = plain(problem, body, lanes, tile_rows, 8);
  kernel.constants = {static_cast<std::uint32_t>(tile_rows / lanes), lanes};
  kernel.other_rounds = 2 * (tile_rows / lanes + 1);
  return kernel;
}

/// Register tiles of four columns and 32 rows for each invocation of a subgroup; `column_lanes` of them have the same
/// rows.
GemmKernel wide(const Problem& problem, std::string_view body, std::uint32_t lanes, std::uint32_t column_lanes) {
  constexpr std::int64_t rows = 32;
  GemmKernel kernel = plain(problem, body, lanes, rows * lanes / column_lanes, 4 * column_lanes);
  kernel.constants = {lanes, column_lanes};
  kernel.other_rounds = rows;
  kernel.moment_rows = rows;
  return kernel;
}

/// Register tiles of up to 16 columns and a run of positions for each invocation of a subgroup, for convolutions whose
/// taps in a row overlap: shaders/gemm/gemm_runs.glsl. Unless runs are short, they take less time than thin tiles.
std::optional<GemmKernel> runs(const plan::Target& target, const Problem& problem) {
  constexpr std::uint32_t lanes = 8;
  constexpr std::int64_t most_products = 200;  // of four k each, unrolled: more do not fit a core's instruction cache
  const std::int64_t columns = problem.columns > 8 && problem.row_taps <= 3 ? 16 : 8;
  const bool can = target.subgroups.hand_over() && target.subgroups.size == lanes && problem.row_taps > 1 &&
                   problem.row_taps * columns <= most_products && !problem.float16_partials &&
                   problem.operand_quads <= target.max_texels;
  if (!can) return {};
  std::int64_t run = std::min<std::int64_t>(8, most_products / (problem.row_taps * columns));
  while (problem.row_positions % run != 0) --run;
  GemmKernel kernel = plain(problem, "", lanes, lanes * run, columns);
  kernel.name = "runs8_texels";
  kernel.shader = fmt::format("gemm_runs.{}.{}", name(problem.operands), graph::info(problem.dtype).words);
  kernel.texels = true;
  kernel.k_quads = problem.row_taps * plan::divided_up(problem.k, 4);
  kernel.constants = {static_cast<std::uint32_t>(run), static_cast<std::uint32_t>(problem.row_taps),
                      static_cast<std::uint32_t>(columns / 4)};
  kernel.other_rounds = columns / 4 * (run + 1);
  return kernel;
}

/// Rows that the tiles of a kernel have together.
std::int64_t rows_in_tiles(const Problem& problem, const GemmKernel& kernel) {
  return plan::divided_up(problem.rows, kernel.tile_rows) * kernel.tile_rows;
}

/// Tiles of subgroups, the best first.
std::vector<GemmKernel> register_tiles(const Problem& problem, std::uint32_t size, std::string_view kind) {
  const auto named = [&](std::string_view name, GemmKernel kernel) {
    kernel.name = fmt::format("{}{}{}", name, size, kind);
    return kernel;
  };
  const std::string lanes = fmt::format("lanes{}", kind);
  std::vector<GemmKernel> found{named("lanes", wide(problem, lanes, size, size)),
                                named("thin", thin(problem, fmt::format("thin{}", kind), size))};
  const bool few_columns = problem.columns <= 2 * size && problem.rows > 64;  // and not few tiles
  if (few_columns) std::swap(found[0], found[1]);
  if (size != 8) return found;
  // Of the same rows, halves take about four fifths of the time of thin tiles, if columns fill them.
  found.push_back(named("halves", wide(problem, lanes, size, size / 2)));
  const bool pays = few_columns && problem.columns > size &&
                    4 * rows_in_tiles(problem, found[2]) <= 5 * rows_in_tiles(problem, found[0]);
  if (pays) std::rotate(found.begin(), found.end() - 1, found.end());
  return found;
}

}  // namespace

GemmKernel plain(const Problem& problem, std::string_view body, std::uint32_t local_size, std::int64_t tile_rows,
                 std::int64_t tile_columns) {
  GemmKernel kernel;
  kernel.shader = fmt::format("gemm.{}.{}.{}", name(problem.operands), graph::info(problem.dtype).words, body);
  kernel.name = body;
  kernel.local_size = local_size;
  kernel.tile_rows = tile_rows;
  kernel.tile_columns = tile_columns;
  kernel.moment_rows = tile_rows;
  return kernel;
}

std::vector<GemmKernel> subgroup_tiles(const plan::Target& target, const Problem& problem) {
  std::vector<GemmKernel> found;
  const std::uint32_t size = target.subgroups.size;
  for (const bool texels : {true, false}) {
    if (!target.subgroups.hand_over()) break;
    if (texels && (target.max_texels == 0 || problem.operand_quads > target.max_texels)) continue;
    for (GemmKernel& kernel : register_tiles(problem, size, texels ? "_texels" : "")) {
      kernel.texels = texels;
      if (problem.float16_partials) kernel.quad_rounds = 2;  // sums are rounded within segments
      found.push_back(std::move(kernel));
    }
  }
  if (const std::optional<GemmKernel> overlapping = runs(target, problem)) {
    const bool halves_are_faster = found.front().name.starts_with("halves") && b_lies_along_k(problem.operands);
    const bool pays = problem.columns <= 16 && overlapping->constants[0] >= 4 && !halves_are_faster;
    found.insert(pays ? found.begin() : found.end(), *overlapping);
  }
  if (target.subgroups.broadcast && size == 4 && !problem.float16_partials) {
    found.push_back(plain(problem, "lanes4", 4, 8, 16));
    found.back().other_rounds = 8;
  }
  return found;
}

}  // namespace halfstep::ops
