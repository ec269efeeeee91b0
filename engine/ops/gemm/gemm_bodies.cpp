#include "ops/gemm/gemm_bodies.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <string_view>

#include "graph/dtype.h"
#include "ops/gemm/gemm_panels.h"

namespace halfstep::ops {
namespace {

/// A body of shaders/gemm/gemm.comp. It reads narrow types in 32-bit words: see there.
Body plain(const Problem& problem, std::string name_of_body, std::uint32_t local_size, std::int64_t tile_rows,
           std::int64_t tile_columns) {
  Body body;
  body.shader = fmt::format("gemm.{}.{}.{}", name(problem.operands), graph::info(problem.dtype).words, name_of_body);
  body.name = std::move(name_of_body);
  body.local_size = local_size;
  body.tile_rows = tile_rows;
  body.tile_columns = tile_columns;
  body.moment_rows = tile_rows;
  return body;
}

/// Register tiles of eight columns and at most 128 rows; the number of rows divides the problem's rows most evenly.
Body thin(const Problem& problem, std::string name_of_body) {
  const bool along_k = problem.operands == Operands::row_row || problem.operands == Operands::row_col ||
                       problem.operands == Operands::patches_row || problem.operands == Operands::patches_col;
  const std::int64_t least = along_k ? 8 : 32;
  const std::int64_t tile_rows =
      plan::divided_up(plan::divided_up(problem.rows, plan::divided_up(problem.rows, 128)), least) * least;
  Body body = plain(problem, std::move(name_of_body), 8, tile_rows, 8);
  body.constants = {static_cast<std::uint32_t>(tile_rows / 8)};
  body.other_rounds = 2 * (tile_rows / 8 + 1);
  return body;
}

/// Register tiles shared by a subgroup, if there is a kernel for the subgroup size of a software driver. The thin one
/// loads A more often; measurements show that it is faster if half of the wide one's columns would be padding.
std::vector<Body> lanes(const plan::Target& target, const Problem& problem) {
  std::vector<Body> found;
  for (const bool texels : {true, false}) {
    if (!target.subgroup_shuffle || target.subgroup_size != 8) break;
    if (texels && (target.max_texels == 0 || problem.operand_quads > target.max_texels)) continue;
    const std::string kind = texels ? "8_texels" : "8";
    std::array<Body, 2> pair{plain(problem, "lanes" + kind, 8, 32, 32), thin(problem, "thin" + kind)};
    pair[0].other_rounds = 32;
    if (problem.columns <= 16 && problem.rows > 64) std::swap(pair[0], pair[1]);
    for (Body& body : pair) {
      body.texels = texels;
      if (problem.float16_partials) body.quad_rounds = 2;  // sums are rounded within segments
      found.push_back(std::move(body));
    }
  }
  if (target.subgroup_broadcast && target.subgroup_size == 4 && !problem.float16_partials) {
    found.push_back(plain(problem, "lanes4", 4, 8, 16));
    found.back().other_rounds = 8;
  }
  return found;
}

/// Shared memory of gemm_tile.glsl, in bytes: for A and B each, 16 k of a tile's side plus one quad.
std::uint32_t shared_bytes(std::uint32_t tile) {
  return 2 * 16 * (tile / 4 + 1) * 16;
}

/// Counts the loop rounds of a kernel that fetches `step_quads` of k at a time with gemm_stage.glsl, multiplies them in
/// `products` rounds and stores its results in `stores`. Each load iterates over the segments between its quad and the
/// first of the step, and the step iterates over its own.
void count_stage_rounds(Body& body, std::int64_t step_quads, std::int64_t products, std::int64_t stores) {
  const std::int64_t loads = 2 * body.tile_rows * step_quads / body.local_size;
  const std::int64_t fetch = (loads + 1) * (1 + step_quads);
  body.k_quads = step_quads;
  body.quad_rounds = plan::divided_up(1 + products + fetch, step_quads);
  body.segment_rounds = 0;
  body.other_rounds = fetch + stores;
}

/// Tiles in shared memory, if the device has enough. See gemm_tile.glsl for the threads.
std::vector<Body> tiles(const plan::Target& target, const Problem& problem) {
  std::vector<Body> found;
  for (const auto& [tile, threads] : {std::pair{128U, 256U}, {64U, 128U}, {32U, 64U}}) {
    if (threads > target.max_invocations || shared_bytes(tile) > target.shared_memory_bytes) continue;
    Body body = plain(problem, fmt::format("tile{}", tile), threads, tile, tile);
    // For 8 by 8, 8 by 4 or 4 by 4 results per invocation, and the column moments of all below each other.
    const std::int64_t rows = tile == 32 ? 4 : 8;
    count_stage_rounds(body, 4, 17, (tile == 128 ? 2 : 1) * (rows + 1) + tile / rows + 1);
    found.push_back(std::move(body));
  }
  return found;
}

/// Shared memory of gemm_cooperative.glsl, in bytes.
std::uint32_t shared_bytes(const plan::MatrixShape& shape, std::uint32_t tile, std::uint32_t subgroups) {
  constexpr std::uint32_t k_quads = 8;
  const std::uint32_t operand = std::max(tile * (k_quads + 2), k_quads * 4 * (tile / 4 + 2)) * 8;
  return 2 * operand + subgroups * shape.rows * shape.columns * 4;
}

/// Tiles on matrix units, with one fragment shape.
std::vector<Body> cooperative(const plan::Target& target, const Problem& problem, const plan::MatrixShape& shape) {
  std::vector<Body> found;
  for (const auto& [tile, side] : {std::pair{128U, 2U}, {64U, 2U}, {32U, 1U}}) {
    const std::uint32_t square = tile / side;
    const std::uint32_t threads = side * side * target.subgroup_size;
    const bool fits = square % shape.rows == 0 && square % shape.columns == 0 && 32 % shape.k == 0 &&
                      shape.columns % 4 == 0 && threads <= target.max_invocations &&
                      shared_bytes(shape, tile, side * side) <= target.shared_memory_bytes;
    if (!fits) continue;
    Body body;
    body.name = fmt::format("cooperative{}.{}x{}x{}", tile, shape.rows, shape.columns, shape.k);
    body.shader =
        fmt::format("gemm_cooperative.{}.{}.{}", name(problem.operands), shape.float16_sums ? "f16" : "f32", tile);
    body.local_size = threads;
    body.tile_rows = tile;
    body.tile_columns = tile;
    body.risky = true;
    if (target.subgroup_size % (shape.columns / 4) == 0) body.moment_rows = square;
    // Each fragment is stored in its own loop, and each of its columns merges moments across the subgroup.
    const std::int64_t fragments = (square / shape.rows) * (square / shape.columns);
    const std::int64_t quads_each = plan::divided_up(shape.rows * shape.columns / 4, target.subgroup_size);
    count_stage_rounds(body, 8, 32 / shape.k + 1, fragments * (quads_each + 1) + square / shape.columns * 8);
    body.constants = {shape.rows, shape.columns, shape.k};
    found.push_back(body);
  }
  return found;
}

/// Those with the requested accumulator type.
std::vector<Body> cooperative(const plan::Target& target, const Problem& problem) {
  std::vector<Body> found;
  if (problem.dtype != DType::f16 || target.subgroup_size == 0 || !target.subgroup_shuffle) return found;
  for (const plan::MatrixShape& shape : target.matrix_shapes) {
    if (shape.float16_sums == problem.float16_partials)
      std::ranges::move(cooperative(target, problem, shape), std::back_inserter(found));
  }
  return found;
}

/// The expected cost of the tiles on a GPU: the number of rounds that its compute units need for all of them, times the
/// work of one tile. That work shrinks more slowly than the tile, since a smaller tile uses each loaded number less
/// often. This is an unmeasured estimate.
double expected_cost(const plan::Target& target, const Problem& problem, const Body& body) {
  const std::int64_t groups = problem.batches * plan::divided_up(problem.rows, body.tile_rows) *
                              plan::divided_up(problem.columns, body.tile_columns);
  const std::int64_t rounds = plan::divided_up(groups, target.compute_units);
  const auto side = static_cast<double>(body.tile_rows);
  return static_cast<double>(rounds) * side * (side + 32);
}

/// Whether the operands can be read by uniform loads: the panels (ops/gemm/gemm_panels.h) must fit in one binding.
bool fits_uniform(const plan::Target& target, const Problem& problem, std::int64_t panel_columns) {
  const Operands operands = with_panels(problem.operands);
  const bool laid_out = operands == Operands::row_row || operands == Operands::patches_row;
  const std::int64_t columns = problem.batches * plan::divided_up(problem.columns, panel_columns) * panel_columns;
  const std::int64_t zeros = 4;  // at most this many columns' worth
  const std::int64_t panel_quads = (columns + zeros) * problem.segments * plan::divided_up(problem.k, 4);
  const auto bytes = static_cast<std::uint64_t>(std::max(panel_quads, problem.operand_quads)) * 4 * sizeof(float);
  return target.uniform_loads && target.subgroup_shuffle && target.subgroup_size == 8 && laid_out &&
         bytes <= target.max_storage_range && !problem.float16_partials;
}

/// A kernel with uniform loads: see gemm_uniform.glsl.
Body uniform(const Problem& problem, std::int64_t tile_rows, std::int64_t tile_columns) {
  const std::string tile = fmt::format("{}x{}", tile_rows, tile_columns);
  Body body;
  body.name = "uniform" + tile;
  body.shader =
      fmt::format("gemm_uniform.{}.{}.{}", name(with_panels(problem.operands)), graph::info(problem.dtype).words, tile);
  body.local_size = 8;
  body.tile_rows = tile_rows;
  body.tile_columns = tile_columns;
  body.uniform = true;
  body.moment_rows = tile_rows;
  for (body.k_quads = 8; plan::divided_up(problem.k, 4) % body.k_quads != 0; --body.k_quads) continue;
  body.constants = {static_cast<std::uint32_t>(body.k_quads)};
  body.other_rounds = 6;
  return body;
}

/// The usable ones; the one whose tiles are filled better comes first.
std::vector<Body> uniform(const plan::Target& target, const Problem& problem) {
  std::vector<Body> found;
  if (fits_uniform(target, problem, 32)) found = {uniform(problem, 6, 32), uniform(problem, 12, 16)};
  if (problem.columns <= 16) std::ranges::reverse(found);
  return found;
}

/// Whether uniform loads are worth their preparation: packing B, which pays if enough rows use it, converting A, which
/// pays if enough columns do, and processing few quads of k at a time. Measured on lavapipe of Mesa 26.
bool uniform_pays(const plan::Target& target, const Problem& problem, const Body& body) {
  const std::int64_t tiles = problem.batches * plan::divided_up(problem.rows, body.tile_rows) *
                             plan::divided_up(problem.columns, body.tile_columns);
  const bool widened = is_narrow(problem.dtype);
  return body.k_quads > 2 && problem.rows >= 128 && problem.columns > (widened ? 16 : 8) &&
         tiles >= target.wanted_groups && (!widened || problem.columns * problem.segments >= 96);
}

/// The register tiles of software drivers.
std::vector<Body> registers(const plan::Target& target, const Problem& problem) {
  std::vector<Body> found = lanes(target, problem);
  const std::vector<Body> others = uniform(target, problem);
  const bool first = !others.empty() && uniform_pays(target, problem, others.front());
  found.insert(first ? found.begin() : found.end(), others.begin(), others.end());
  return found;
}

/// Every kernel that supports `problem` on `target`, in the order of the fixed rule. A software driver is fastest with
/// register tiles; matrix units, which it emulates, come last. A GPU is fastest with its matrix units, then with shared
/// memory.
std::vector<Body> possible(const plan::Target& target, const Problem& problem) {
  std::vector<Body> shared = tiles(target, problem);
  std::vector<Body> units = cooperative(target, problem);
  for (std::vector<Body>* kind : {&shared, &units}) {
    std::ranges::stable_sort(*kind, {}, [&](const Body& body) { return expected_cost(target, problem, body); });
  }
  std::vector<Body> found;
  if (target.cpu) found = registers(target, problem);
  std::ranges::move(target.cpu ? shared : units, std::back_inserter(found));
  std::ranges::move(target.cpu ? units : shared, std::back_inserter(found));
  return found;
}

/// Those of `bodies` that can compute at least one step: a driver's limit of loop rounds may be below the fixed cost of
/// a large tile.
std::vector<Body> within_rounds(const plan::Target& target, const Problem& problem, std::vector<Body> bodies) {
  std::erase_if(bodies, [&](const Body& body) {
    return most_part_quads(target, body, plan::divided_up(problem.k, 4)) < body.k_quads;
  });
  return bodies;
}

/// Those of `bodies` that Target::gemm_bodies names: the one with that name, or all whose names begin with it.
std::vector<Body> named(const plan::Target& target, const std::vector<Body>& bodies) {
  std::vector<Body> found;
  for (const Body& body : bodies) {
    if (body.name == target.gemm_bodies) return {body};
    if (body.name.starts_with(target.gemm_bodies)) found.push_back(body);
  }
  return found;
}

/// Throws if Target::gemm_bodies names no kernel that the target has for any problem.
void expect_known(const plan::Target& target, Problem problem) {
  std::set<std::string> names;
  for (const bool float16_partials : {false, true}) {
    problem.operands = Operands::row_row;
    problem.dtype = DType::f16;
    problem.float16_partials = float16_partials;
    for (const Body& body : possible(target, problem)) names.insert(body.name);
  }
  const bool known =
      std::ranges::any_of(names, [&](const std::string& name) { return name.starts_with(target.gemm_bodies); });
  if (known) return;
  fail("gemm", fmt::format("expected HALFSTEP_GEMM to begin the name of a body, got {}", target.gemm_bodies),
       fmt::format("this device has {}", fmt::join(names, ", ")));
}

}  // namespace

std::string_view name(Operands operands) {
  constexpr std::array<std::string_view, 7> names{"row_row",     "row_col",     "col_row",   "col_col",
                                                  "patches_row", "patches_col", "pixels_row"};
  return names[static_cast<std::size_t>(operands)];
}

Problem problem(const plan::Lowering& out, const Gemm& gemm) {
  const auto quads = [&](plan::TensorId tensor) { return plan::layout(out.type(tensor).shape).quads(); };
  return {.operands = gemm.operands,
          .dtype = out.type(gemm.a).dtype,
          .float16_partials = gemm.partials == DType::f16,
          .rows = rows_of_a(gemm),
          .columns = gemm.columns,
          .k = gemm.k,
          .segments = gemm.segments,
          .batches = gemm.batches,
          .operand_quads = std::max(quads(gemm.a), quads(gemm.b))};
}

std::int64_t part_rounds(const Body& body, std::int64_t part_quads, std::int64_t segment_quads) {
  const std::int64_t segments = plan::divided_up(part_quads, segment_quads) + 1;  // it can begin and end inside one
  return part_quads * body.quad_rounds + segments * body.segment_rounds + body.other_rounds;
}

std::int64_t most_part_quads(const plan::Target& target, const Body& body, std::int64_t segment_quads) {
  // There are at most part_quads / segment_quads + 2 segments.
  const std::int64_t left = std::int64_t{target.max_rounds} - body.other_rounds - 2 * body.segment_rounds;
  const std::int64_t quads = left * segment_quads / (segment_quads * body.quad_rounds + body.segment_rounds);
  return std::max<std::int64_t>(quads, 0) / body.k_quads * body.k_quads;
}

std::vector<Body> bodies(const plan::Target& target, const Problem& problem) {
  const std::vector<Body> all = within_rounds(target, problem, possible(target, problem));
  if (!target.gemm_bodies.empty()) {
    if (std::vector<Body> wanted = named(target, all); !wanted.empty()) return wanted;
    expect_known(target, problem);
  }
  // Kernels that are fast only on GPUs are not considered on a software driver that has register tiles.
  std::vector<Body> few;
  if (target.cpu) few = within_rounds(target, problem, registers(target, problem));
  if (few.empty()) few = all;
  if (few.empty()) {
    fail("gemm", fmt::format("expected a kernel that runs within {} loop rounds, the driver's limit, got none",
                             target.max_rounds));
  }
  return few;
}

}  // namespace halfstep::ops
