#include "ops/gemm/subgroup_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

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

/// Register tiles of four columns for each invocation of a subgroup.
GemmKernel wide(const Problem& problem, std::string_view body, std::uint32_t lanes) {
  GemmKernel kernel = plain(problem, body, lanes, 32, 4 * lanes);
  kernel.constants = {lanes};
  kernel.other_rounds = 32;
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
  const std::optional<GemmKernel> overlapping = runs(target, problem);
  const bool runs_pay = overlapping && problem.columns <= 16 && overlapping->constants[0] >= 4;
  if (runs_pay) found.push_back(*overlapping);
  for (const bool texels : {true, false}) {
    if (!target.subgroups.hand_over()) break;
    if (texels && (target.max_texels == 0 || problem.operand_quads > target.max_texels)) continue;
    const std::string_view kind = texels ? "_texels" : "";
    std::array<GemmKernel, 2> pair{wide(problem, fmt::format("lanes{}", kind), size),
                                   thin(problem, fmt::format("thin{}", kind), size)};
    pair[0].name = fmt::format("lanes{}{}", size, kind);
    pair[1].name = fmt::format("thin{}{}", size, kind);
    if (problem.columns <= 2 * size && problem.rows > 64) std::swap(pair[0], pair[1]);
    for (GemmKernel& kernel : pair) {
      kernel.texels = texels;
      if (problem.float16_partials) kernel.quad_rounds = 2;  // sums are rounded within segments
      found.push_back(std::move(kernel));
    }
  }
  if (overlapping && !runs_pay) found.push_back(*overlapping);
  if (target.subgroups.broadcast && size == 4 && !problem.float16_partials) {
    found.push_back(plain(problem, "lanes4", 4, 8, 16));
    found.back().other_rounds = 8;
  }
  return found;
}

}  // namespace halfstep::ops
