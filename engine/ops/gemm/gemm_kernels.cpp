#include "ops/gemm/gemm_kernels.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <string_view>

#include "graph/dtype.h"
#include "ops/gemm/gemm_panels.h"
#include "ops/gemm/subgroup_kernels.h"
#include "ops/gemm/uniform_kernels.h"
#include "ops/gemm/winograd.h"

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

/// The tiles that compute in f16: where the device does, and sums are to be f16.
std::vector<GemmKernel> halves(const plan::Target& target, const Problem& problem) {
  const bool can = target.float16.arithmetic && problem.dtype == DType::f16 && problem.float16_partials;
  return can ? tiles(target, problem, Arithmetic::halves) : std::vector<GemmKernel>{};
}

/// The tiles that multiply pairs of f16 and sum in f32: where the device has an instruction for that, or they are asked
/// for by name.
std::vector<GemmKernel> dots(const plan::Target& target, const Problem& problem) {
  const bool wanted = target.float16.dots || target.gemm_kernels.starts_with("dots");
  const bool can = problem.dtype == DType::f16 && !problem.float16_partials;
  return wanted && can ? tiles(target, problem, Arithmetic::dots) : std::vector<GemmKernel>{};
}

/// Shared memory of gemm_cooperative.glsl, in bytes: for operands, `step` quads of k at a time, in lines along or
/// across k, and in the end for results.
std::uint32_t shared_bytes(const plan::MatrixShape& shape, std::uint32_t tile, std::uint32_t side, std::uint32_t step) {
  const std::uint32_t operand = std::max(tile * (step + 2), 4 * step * (tile / 4 + 2)) * 8;
  const std::uint32_t band = shape.rows * (tile / side + 4) * 4;  // of a subgroup
  return std::max(2 * operand, side * side * band);
}

/// The same, with operands transposed so that both lie along k.
GemmKernel transposing(GemmKernel kernel) {
  kernel.name += ".transposing";
  kernel.constants[3] = 1;
  return kernel;
}

bool are_along_k(Operands operands) {
  return operands == Operands::row_col || operands == Operands::patches_col;
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
                    shared_bytes(shape, tile, side, step) <= target.shared_memory_bytes;
  if (!fits) return std::nullopt;
  GemmKernel kernel;
  kernel.name = fmt::format("cooperative{}.{}x{}x{}", tile, shape.rows, shape.columns, shape.k);
  if (step != 8) kernel.name += fmt::format(".step{}", 4 * step);
  kernel.shader = fmt::format("gemm_cooperative.{}.{}", name(problem.operands), shape.float16_sums ? "f16" : "f32");
  kernel.bfloat16_matrices = shape.dtype == DType::bf16;
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

/// The shapes of fragments that matrix units multiply for `problem`, those with the most products at once first.
std::vector<plan::MatrixShape> fragments(const plan::Target& target, const Problem& problem) {
  std::vector<plan::MatrixShape> found;
  std::ranges::copy_if(target.matrix_shapes, std::back_inserter(found), [&](const plan::MatrixShape& shape) {
    return shape.dtype == problem.dtype && shape.float16_sums == problem.float16_partials;
  });
  std::ranges::stable_sort(found, std::ranges::greater{},
                           [](const plan::MatrixShape& shape) { return shape.rows * shape.columns * shape.k; });
  return found;
}

/// Tiles on matrix units, each of the first fragments that fit it. Those that transpose operands come first where
/// matrix units read them faster along k, else last. Long steps wait for memory less often: they come first, unless a
/// short one is enough.
std::vector<GemmKernel> cooperative(const plan::Target& target, const Problem& problem) {
  std::vector<GemmKernel> found;
  if (target.subgroups.size == 0 || !target.subgroups.shuffle) return found;
  const std::vector<plan::MatrixShape> shapes = fragments(target, problem);
  const bool both_ways = !are_along_k(problem.operands);
  std::array<std::uint32_t, 2> steps{16, 8};
  if (problem.segments * plan::divided_up(problem.k, 4) <= steps[1]) std::ranges::reverse(steps);
  for (const std::uint32_t tile : {128U, 64U, 32U}) {
    for (const std::uint32_t step : steps) {
      std::optional<GemmKernel> kernel;
      for (auto shape = shapes.begin(); !kernel && shape != shapes.end(); ++shape)
        kernel = cooperative(target, problem, *shape, tile, step);
      if (!kernel) continue;
      if (both_ways && target.matrices_along_k) found.push_back(transposing(*kernel));
      found.push_back(*kernel);
      if (both_ways && !target.matrices_along_k) found.push_back(transposing(*kernel));
    }
  }
  return found;
}

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

/// Moves the first kernel of each size of tile to the front: a GPU times the first few, and the size matters most.
void put_sizes_first(std::vector<GemmKernel>& kernels) {
  std::set<std::int64_t> sizes;
  std::vector<GemmKernel> others;
  std::erase_if(kernels, [&](const GemmKernel& kernel) {
    const bool is_first = sizes.insert(kernel.tile_rows).second;
    if (!is_first) others.push_back(kernel);
    return !is_first;
  });
  std::ranges::move(others, std::back_inserter(kernels));
}

/// Every kernel that computes tiles of `problem` on `target`, in the order of the fixed rule. A software driver is
/// fastest with register tiles; matrix units, which it emulates, come last. A GPU is fastest with its matrix units,
/// then in f16 arithmetic or from pairs of f16, then in f32.
std::vector<GemmKernel> possible(const plan::Target& target, const Problem& problem) {
  std::array<std::vector<GemmKernel>, 4> kinds{cooperative(target, problem), halves(target, problem),
                                               dots(target, problem), tiles(target, problem, Arithmetic::singles)};
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
  for (const GemmKernel& kernel : tiles(target, products, Arithmetic::singles)) {
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
  problem.row_positions = 8;
  for (const Operands operands : {Operands::row_row, Operands::col_row}) {
    for (const bool float16_partials : {false, true}) {
      problem.operands = operands;
      problem.float16_partials = float16_partials;
      for (const GemmKernel& kernel : possible(target, problem)) names.insert(kernel.name);
    }
  }
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
          .a_apart = plan::layout(out.type(gemm.a).shape).quads_per_row() * (of_pixels ? patches.step[1] : 1),
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
