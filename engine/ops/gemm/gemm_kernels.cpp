#include "ops/gemm/gemm_kernels.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "graph/dtype.h"
#include "ops/gemm/gemm_panels.h"
#include "ops/gemm/subgroup_kernels.h"
#include "ops/gemm/tile_kernels.h"
#include "ops/gemm/uniform_kernels.h"
#include "ops/gemm/winograd.h"

namespace halfstep::ops {
namespace {

/// The expected cost of the tiles on a GPU: the number of rounds that its compute units need for all of them, times the
/// work of one tile. That work shrinks more slowly than the tile, since a smaller tile uses each loaded number less
/// often. Where there are few tiles, k is cut into parts (gemm.cpp), whose sums are stored and added: at 4 bytes a
/// clock and compute unit, while it adds 128 products. This is an unmeasured estimate.
double expected_cost(const plan::Target& target, const Problem& problem, const GemmKernel& kernel) {
  const std::int64_t groups = problem.batches * plan::divided_up(problem.rows, kernel.tile_rows) *
                              plan::divided_up(problem.columns, kernel.tile_columns);
  const std::int64_t k_quads = problem.segments * plan::divided_up(problem.k, 4);
  const std::int64_t parts =
      std::max<std::int64_t>(1, std::min(plan::divided_up(target.wanted_groups, groups), k_quads / least_part_quads));
  const auto rounds = static_cast<double>(plan::divided_up(groups * parts, target.compute_units));
  const auto side = static_cast<double>(kernel.tile_rows);
  const auto part_k = static_cast<double>(k_quads * 4) / static_cast<double>(parts);
  const auto stored = static_cast<double>(parts > 1 ? 8 * problem.batches * problem.rows * problem.columns * parts : 0);
  return rounds * part_k * side * (side + 32) / 128 + stored / (4.0 * target.compute_units);
}

/// The register tiles of software drivers.
std::vector<GemmKernel> registers(const plan::Target& target, const Problem& problem) {
  std::vector<GemmKernel> found = subgroup_tiles(target, problem);
  for (const UniformKernels& others : {uniform_kernels(target, problem), outer_kernels(target, problem)}) {
    const auto at = others.pay ? found.begin() : found.end();
    found.insert(at, others.kernels.begin(), others.kernels.end());
  }
  return found;
}

/// Moves the first kernel of each size of tile, and of each type of matrices, to the front: a GPU times the first few,
/// and these matter most.
void put_sizes_first(std::vector<GemmKernel>& kernels) {
  std::set<std::pair<std::int64_t, plan::MatrixType>> sizes;
  std::vector<GemmKernel> others;
  std::erase_if(kernels, [&](const GemmKernel& kernel) {
    const bool is_first = sizes.emplace(kernel.tile_rows, kernel.matrices).second;
    if (!is_first) others.push_back(kernel);
    return !is_first;
  });
  std::ranges::move(others, std::back_inserter(kernels));
}

/// Every kernel that computes tiles of `problem` on `target`, in the order of the fixed rule. A software driver is
/// fastest with register tiles; matrix units, which it emulates, come last. A GPU is fastest with its matrix units,
/// then in f16 arithmetic or from pairs of f16, then in f32.
std::vector<GemmKernel> possible(const plan::Target& target, const Problem& problem) {
  std::array<std::vector<GemmKernel>, 4> kinds{matrix_tiles(target, problem), half_tiles(target, problem),
                                               dot_tiles(target, problem), plain_tiles(target, problem)};
  for (std::vector<GemmKernel>& kind : kinds) {
    std::ranges::stable_sort(kind, {},
                             [&](const GemmKernel& kernel) { return expected_cost(target, problem, kernel); });
    put_sizes_first(kind);
  }
  std::vector<GemmKernel> found;
  if (target.cpu) {
    found = registers(target, problem);
    std::ranges::reverse(kinds);
  }
  for (std::vector<GemmKernel>& kind : kinds) std::ranges::move(kind, std::back_inserter(found));
  return found;
}

/// The expected cost of Winograd's algorithm, in the same unit as that of tiles: of its products, and of what the
/// transforms read and write.
double expected_cost_of_winograd(const plan::Target& target, const Problem& problem) {
  const Problem products = winograd_products(problem);
  double least = std::numeric_limits<double>::infinity();
  for (const GemmKernel& kernel : plain_tiles(target, products)) {
    least = std::min(least, expected_cost(target, products, kernel));
  }
  return least + winograd_bytes(problem) / (4.0 * target.compute_units);
}

/// `kernels`, the best by rule first, and Winograd's algorithm if it computes `problem`. On a software driver it is
/// first where it was measured to be faster. On a GPU it is second, and so among those that are timed, where it may be:
/// where it is expected to cost at most `margin` of the first. Predictions for AMD's GPUs find it up to 1.8 times as
/// good as this estimate does (tests/bench/RESULTS.md).
std::vector<GemmKernel> with_winograd(const plan::Target& target, const Problem& problem,
                                      std::vector<GemmKernel> kernels) {
  if (problem.winograd_tiles == 0 || kernels.empty()) return kernels;
  auto at = kernels.end();
  if (target.cpu && winograd_pays(target, problem)) at = kernels.begin();
  constexpr double margin = 1.4;
  const auto may_pay = [&] {
    return expected_cost_of_winograd(target, problem) < margin * expected_cost(target, problem, kernels.front());
  };
  if (!target.cpu && may_pay()) at = kernels.begin() + 1;
  kernels.insert(at, winograd_kernel());
  return kernels;
}

/// Those of `kernels` that can compute at least one step: a driver's limit of loop rounds may be below the fixed cost
/// of a large tile.
std::vector<GemmKernel> within_rounds(const plan::Target& target, const Problem& problem,
                                      std::vector<GemmKernel> kernels) {
  std::erase_if(kernels, [&](const GemmKernel& kernel) {
    return most_part_quads(target, kernel, plan::divided_up(problem.k, 4)) < kernel.k_quads;
  });
  return kernels;
}

/// Those of `kernels` that Target::gemm_kernels names: the one with that name, or all whose names begin with it.
std::vector<GemmKernel> named(const plan::Target& target, const std::vector<GemmKernel>& kernels) {
  std::vector<GemmKernel> found;
  for (const GemmKernel& kernel : kernels) {
    if (kernel.name == target.gemm_kernels) return {kernel};
    if (kernel.name.starts_with(target.gemm_kernels)) found.push_back(kernel);
  }
  return found;
}

/// Throws if Target::gemm_kernels names no kernel that the target has for any problem.
void expect_known(const plan::Target& target, Problem problem) {
  std::set<std::string> names;
  problem.dtype = DType::f16;
  problem.columns = 16;
  problem.row_taps = 3;
  const auto insert_names = [&] {
    for (const GemmKernel& kernel : possible(target, problem)) names.insert(kernel.name);
  };
  for (const Operands operands : {Operands::row_row, Operands::col_row}) {
    for (const auto& [float16_partials, float8] : {std::pair{false, false}, {true, false}, {false, true}}) {
      problem.operands = operands;
      problem.float16_partials = float16_partials;
      problem.float8 = float8;
      insert_names();
    }
  }
  problem.float8 = false;
  for (problem.row_positions = 2; problem.row_positions <= 16; ++problem.row_positions) insert_names();
  if (target.winograd) names.insert(winograd_kernel().name);
  const bool known =
      std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(target.gemm_kernels); });
  if (known) return;
  fail("gemm", fmt::format("expected HALFSTEP_GEMM to begin the name of a kernel, got {}", target.gemm_kernels),
       fmt::format("this device has {}", fmt::join(names, ", ")));
}

}  // namespace

std::string_view name(Operands operands) {
  constexpr std::array<std::string_view, 8> names{"row_row",     "row_col",     "col_row",    "col_col",
                                                  "patches_row", "patches_col", "pixels_row", "planes_row"};
  return names[static_cast<std::size_t>(operands)];
}

bool a_lies_along_k(Operands operands) {
  return operands == Operands::row_row || operands == Operands::row_col || operands == Operands::patches_row ||
         operands == Operands::patches_col;
}

bool b_lies_along_k(Operands operands) {
  return operands == Operands::row_col || operands == Operands::col_col || operands == Operands::patches_col;
}

bool is_of_images(Operands operands) {
  return operands == Operands::patches_row || operands == Operands::patches_col || operands == Operands::pixels_row ||
         operands == Operands::planes_row;
}

std::int64_t row_tiles(const GemmKernel& kernel, const Gemm& gemm) {
  const std::int64_t ones = kernel.uniform && gemm.column_sums ? 1 : 0;
  const std::int64_t rows = ones > 0 ? gemm.rows : rows_of_a(gemm);
  const Pair phases = gemm.patches.divided() ? gemm.patches.phases() : Pair{1, 1};
  const std::int64_t phase_rows = rows / (phases[0] * phases[1]);
  const std::int64_t group = kernel.row_group > 0 ? kernel.row_group : phase_rows;
  return plan::divided_up(rows, group) * plan::divided_up(group, kernel.tile_rows) + ones;
}

namespace {

std::int64_t segments_in_row(const Gemm& gemm) {
  if (gemm.operands == Operands::pixels_row) return gemm.patches.grid[0];
  const bool of_patches = gemm.operands == Operands::patches_row || gemm.operands == Operands::patches_col;
  return of_patches && !gemm.patches.divided() ? gemm.patches.kernel_width : 1;
}

}  // namespace

Problem problem(const plan::Lowering& out, const Gemm& gemm) {
  const auto quads = [&](plan::TensorId tensor) { return plan::layout(out.type(tensor).shape).quads(); };
  const bool of_pixels = gemm.operands == Operands::pixels_row;
  const bool of_patches = gemm.operands == Operands::patches_row || gemm.operands == Operands::patches_col;
  const Patches& patches = gemm.patches;
  const bool adjacent = of_patches && !patches.divided() && patches.step[1] == 1 &&
                        (patches.tap_step[1] == 1 || patches.tap_step[1] == -1);
  return {.operands = gemm.operands,
          .dtype = out.type(gemm.a).dtype,
          .float16_partials = gemm.partials == DType::f16,
          .float8 = gemm.float8,
          .rows = rows_of_a(gemm),
          .columns = gemm.columns,
          .k = gemm.k,
          .segments = gemm.segments,
          .batches = gemm.batches,
          .operand_quads = std::max(quads(gemm.a), quads(gemm.b)),
          .tap_rows = of_pixels ? gemm.patches.channels : gemm.rows,
          .segments_in_row = segments_in_row(gemm),
          .plane_quads = plane_quads(out, gemm),
          .bordered_quads = bordered_quads(out, gemm),
          .taps_inside = taps_inside(gemm),
          .winograd_tiles = winograd_tiles(out, gemm),
          .row_taps = adjacent ? patches.kernel_width : 0,
          .row_positions = of_patches ? patches.grid[1] : 0,
          .a_apart = plan::layout(out.type(gemm.a).shape).quads_per_row() * patches.step[1],
          .b_apart = plan::layout(out.type(gemm.b).shape).quads_per_row(),
          .margin = margin(gemm)};
}

std::int64_t part_rounds(const GemmKernel& kernel, std::int64_t part_quads, std::int64_t segment_quads) {
  const std::int64_t segments = plan::divided_up(part_quads, segment_quads) + 1;  // it can begin and end inside one
  return part_quads * kernel.quad_rounds + segments * kernel.segment_rounds + kernel.other_rounds;
}

std::int64_t most_part_quads(const plan::Target& target, const GemmKernel& kernel, std::int64_t segment_quads) {
  // There are at most part_quads / segment_quads + 2 segments.
  const std::int64_t left = std::int64_t{target.max_rounds} - kernel.other_rounds - 2 * kernel.segment_rounds;
  const std::int64_t quads = left * segment_quads / (segment_quads * kernel.quad_rounds + kernel.segment_rounds);
  return std::max<std::int64_t>(quads, 0) / kernel.k_quads * kernel.k_quads;
}

std::vector<GemmKernel> gemm_kernels(const plan::Target& target, const Problem& problem) {
  const std::vector<GemmKernel> all = within_rounds(target, problem, possible(target, problem));
  if (!target.gemm_kernels.empty()) {
    const std::vector<GemmKernel> ways = with_winograd(target, problem, all);
    if (std::vector<GemmKernel> wanted = named(target, ways); !wanted.empty()) return wanted;
    expect_known(target, problem);
  }
  // Kernels that are fast only on GPUs are not considered on a software driver that has register tiles.
  std::vector<GemmKernel> few;
  if (target.cpu) few = within_rounds(target, problem, registers(target, problem));
  if (few.empty()) few = all;
  if (few.empty()) {
    fail("gemm", fmt::format("expected a kernel that runs within {} loop rounds, the driver's limit, got none",
                             target.max_rounds));
  }
  return with_winograd(target, problem, std::move(few));
}

}  // namespace halfstep::ops
