#include "ops/gemm/uniform_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "ops/gemm/gemm_panels.h"

namespace halfstep::ops {
namespace {

bool has_uniform_loads(const plan::Target& target) {
  return target.uniform_loads && target.subgroups.hand_over();
}

bool has_many_registers(const plan::Target& target) {
  return target.vector_registers >= 32;
}

/// Sums of an invocation: as many as leave registers for a few columns of B and an element of A. What does not fit goes
/// to memory and back with each product.
std::int64_t sums_for(const plan::Target& target) {
  return has_many_registers(target) ? 24 : 12;
}

/// The largest divisor of `value` that is at most `most`, and 1 at least.
std::int64_t largest_divisor(std::int64_t value, std::int64_t most) {
  std::int64_t divisor = std::max<std::int64_t>(most, 1);
  while (value % divisor != 0) --divisor;
  return divisor;
}

/// Columns of a tile that each invocation of a subgroup has, of which there are `lanes`.
struct Share {
  std::uint32_t lanes;
  std::uint32_t columns;
};

/// With so many sums for each invocation.
GemmKernel by_address(const Problem& problem, std::string_view kind, Operands operands, Share share,
                      std::int64_t sums) {
  GemmKernel kernel;
  kernel.local_size = share.lanes;
  kernel.tile_rows = sums / share.columns;
  kernel.tile_columns = std::int64_t{share.lanes} * share.columns;
  kernel.name = fmt::format("{}{}x{}", kind, kernel.tile_rows, kernel.tile_columns);
  kernel.shader = fmt::format("gemm_{}.{}.{}", kind, name(operands), graph::info(problem.dtype).words);
  kernel.uniform = true;
  return kernel;
}

/// How much a kernel adds with each iteration: a part of a segment, or whole ones, as many as are in a row, where those
/// are short. At most `most_step` quads of k: with more, its code outgrows a core's cache.
void set_steps(GemmKernel& kernel, const Problem& problem, Share share, std::int64_t most_step) {
  const std::int64_t length = plan::divided_up(problem.k, 4);
  const std::int64_t step = largest_divisor(length, most_step);
  const std::int64_t segments = step == length ? largest_divisor(problem.segments_in_row, most_step / step) : 0;
  kernel.k_quads = step * std::max<std::int64_t>(segments, 1);
  kernel.constants = {static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(segments), share.lanes,
                      share.columns};
}

/// Elements of k that each of a kernel's steps adds, if that is the same for all of them; else 0.
std::uint32_t length_of_steps(const GemmKernel& kernel, const Problem& problem) {
  const auto step = std::int64_t{kernel.constants.front()};
  if (problem.k % 4 == 0) return static_cast<std::uint32_t>(4 * step);
  return step == plan::divided_up(problem.k, 4) ? static_cast<std::uint32_t>(problem.k) : 0;
}

/// Whether so many quads of f32 are a tensor that has one address.
bool has_address(const plan::Target& target, std::int64_t quads) {
  return plan::has_address(target, 4 * static_cast<std::uint64_t>(quads));
}

/// Of the panels (ops/gemm/gemm_panels.h), too.
bool fits_panels(const plan::Target& target, const Problem& problem, std::int64_t panel_columns) {
  const std::int64_t columns = problem.batches * plan::divided_up(problem.columns, panel_columns) * panel_columns;
  const std::int64_t zeros = 4;  // at most this many columns' worth
  const std::int64_t panel_quads = (columns + zeros) * problem.segments * plan::divided_up(problem.k, 4);
  return has_address(target, std::max(panel_quads, problem.operand_quads));
}

/// Whether A's images may be laid out as planes: a dispatch with an invocation for four quads, which one binding spans.
bool fits_planes(const plan::Target& target, const Problem& problem) {
  const std::uint64_t bytes = 16 * static_cast<std::uint64_t>(std::max(problem.plane_quads, problem.operand_quads));
  const std::uint64_t groups = std::uint64_t{target.max_groups[0]} * target.max_groups[1];
  return problem.plane_quads > 0 && has_address(target, problem.plane_quads) && bytes <= target.max_storage_range &&
         static_cast<std::uint64_t>(problem.plane_quads) <= groups;
}

/// Whether no tile has columns past the last one.
bool fills_tiles(const Problem& problem, const GemmKernel& kernel) {
  return plan::divided_up(problem.columns, 4) * 4 % kernel.tile_columns == 0;
}

/// Quads of a row of B, if tiles read it where it is; 0 if it is packed. In f32, where no tile has columns past the
/// last one; and where so few rows use B that they lose less, since rows far apart are slower to read, than packing
/// takes.
std::int64_t pitch_in_place(const Problem& problem, const GemmKernel& kernel) {
  constexpr std::int64_t most_rows = 320;
  constexpr std::int64_t most_columns = 256;
  const bool by_row = problem.operands == Operands::row_row || problem.operands == Operands::col_row ||
                      problem.operands == Operands::pixels_row;
  const std::int64_t quads = plan::divided_up(problem.columns, 4);
  const bool pays = problem.rows <= most_rows && problem.columns <= most_columns && problem.batches == 1;
  return by_row && fills_tiles(problem, kernel) && pays && !is_narrow(problem.dtype) ? quads : 0;
}

/// Of a data gradient with a stride (shaders/gemm/gemm_taps.glsl).
bool in_phases(const Problem& problem) {
  const bool of_patches = problem.operands == Operands::patches_row || problem.operands == Operands::patches_col;
  return of_patches && problem.bordered_quads == 0;
}

/// Whether A's images get borders first, so that no tap need be compared with an image's extents: where pixels are so
/// small that this takes as long as a tap's products, and the images not too large to keep twice.
bool borders_pay(const plan::Target& target, const Problem& problem) {
  constexpr std::int64_t most_quads = std::int64_t{1} << 23;  // 128 MiB
  const bool small = problem.k <= 4 && problem.segments >= 4 && problem.batches == 1;
  const bool fits = problem.bordered_quads <= most_quads && has_address(target, problem.bordered_quads);
  return small && fits && problem.bordered_quads > 0 && !problem.taps_inside;
}

/// Whether each tile of so many rows is of adjacent positions of one line, so that its rows are as far apart.
bool is_in_line(const Problem& problem, std::int64_t tile_rows) {
  return problem.row_positions > 0 && !in_phases(problem) && problem.row_positions % tile_rows == 0;
}

/// Rows of a tile that is in one line, where such a tile has enough sums to be worth it, which are at most 16; else 0.
std::int64_t rows_in_line(const Problem& problem, std::uint32_t columns) {
  constexpr std::int64_t most_sums = 16;
  constexpr std::int64_t least_sums = 10;
  if (!is_in_line(problem, 1)) return 0;
  const std::int64_t rows = largest_divisor(problem.row_positions, most_sums / columns);
  return rows * columns >= least_sums ? rows : 0;
}

GemmKernel in_panels(const plan::Target& target, const Problem& problem, bool planes, Share share, std::int64_t sums) {
  const Operands operands = planes ? Operands::planes_row : with_panels(problem.operands);
  GemmKernel kernel = by_address(problem, "uniform", operands, share, sums);
  kernel.planes = planes;
  kernel.moment_rows = kernel.tile_rows;
  constexpr std::int64_t most_at_once = 768;  // products of an invocation
  const std::int64_t most_products = has_many_registers(target) ? 1024 : most_at_once;
  set_steps(kernel, problem, share, most_products / (4 * sums));
  const std::uint32_t length = length_of_steps(kernel, problem);
  const bool all = length == problem.k && !in_phases(problem) && problem.k * problem.segments * sums <= most_at_once;
  if (all) {
    kernel.constants[1] = static_cast<std::uint32_t>(problem.segments);
    kernel.k_quads = plan::divided_up(problem.k, 4) * problem.segments;
  }
  kernel.b_pitch = length > 0 ? pitch_in_place(problem, kernel) : 0;
  kernel.panels = kernel.b_pitch == 0;
  kernel.bordered = borders_pay(target, problem);
  const std::int64_t inside = problem.taps_inside || kernel.bordered ? 1 : 0;
  const bool in_line = is_in_line(problem, kernel.tile_rows) && (inside > 0 || !all);
  for (const std::int64_t constant : {std::int64_t{length}, sums, problem.segments_in_row, kernel.b_pitch, inside,
                                      std::int64_t{all}, in_line ? problem.a_apart : 0, problem.margin})
    kernel.constants.push_back(static_cast<std::uint32_t>(constant));
  kernel.may_be_full = fills_tiles(problem, kernel) && share.lanes >= 8;  // as shaders/common/across_lanes.glsl asks
  kernel.other_rounds = 6;
  return kernel;
}

/// Those first that compute the fewest columns past the last one.
void sort_by_columns(std::vector<GemmKernel>& kernels, const Problem& problem) {
  std::ranges::stable_sort(kernels, {}, [&](const GemmKernel& kernel) {
    return plan::divided_up(problem.columns, kernel.tile_columns) * kernel.tile_columns;
  });
}

/// Tiles of all shapes. With 16 registers, two columns of B are loaded for each six elements of A first; with more,
/// tiles that are in one line come first, then four columns for each six elements, and for other rows, which may divide
/// those of the product better, four for each four.
std::vector<GemmKernel> tiles_by_address(const plan::Target& target, const Problem& problem, bool planes) {
  const std::uint32_t lanes = target.subgroups.size;
  const std::int64_t sums = sums_for(target);
  constexpr std::int64_t other_sums = 16;
  constexpr std::uint32_t shares[] = {4, 2, 1};
  std::vector<GemmKernel> found;
  for (const std::uint32_t columns : shares)
    found.push_back(in_panels(target, problem, planes, {lanes, columns}, sums));
  if (has_many_registers(target)) {
    found.insert(found.begin() + 1, in_panels(target, problem, planes, {lanes, 4}, other_sums));
    std::vector<GemmKernel> in_lines;
    for (const std::uint32_t columns : shares) {
      const std::int64_t rows = rows_in_line(problem, columns);
      if (rows > 0) in_lines.push_back(in_panels(target, problem, planes, {lanes, columns}, rows * columns));
    }
    std::erase_if(found, [&](const GemmKernel& kernel) {
      return std::ranges::find(in_lines, kernel.name, &GemmKernel::name) != in_lines.end();
    });
    found.insert(found.begin(), in_lines.begin(), in_lines.end());
  } else {
    std::swap(found[0], found[1]);
  }
  sort_by_columns(found, problem);
  return found;
}

/// Whether it is worth the preparation: packing B, which pays if enough rows use it, converting A, which pays if enough
/// columns do, and leaving lanes without a column.
bool panels_pay(const plan::Target& target, const Problem& problem, const GemmKernel& kernel) {
  const std::int64_t tiles = problem.batches * plan::divided_up(problem.rows, kernel.tile_rows) *
                             plan::divided_up(problem.columns, kernel.tile_columns);
  const bool widened = is_narrow(problem.dtype);
  const std::int64_t least_rows = has_many_registers(target) && kernel.panels ? 128 : 64;
  return kernel.k_quads >= 2 && problem.rows >= least_rows && problem.columns > 4 && tiles >= target.wanted_groups &&
         (!widened || problem.columns * problem.segments >= 96);
}

/// Whether A is better laid out as planes, which is a pass over it, and one over B if that is packed: where they are
/// used often enough. Outer products, which do without, take more registers than 16, and find a tap's pixel for each
/// few channels.
bool planes_pay(const plan::Target& target, const Problem& problem) {
  if (!fits_planes(target, problem)) return false;
  const bool packed = tiles_by_address(target, problem, true).front().panels;
  const std::int64_t b_quads = packed ? problem.segments * problem.k * plan::divided_up(problem.columns, 4) : 0;
  const auto bytes = 32 * static_cast<double>(problem.plane_quads + b_quads);
  const std::int64_t tap_quads = plan::divided_up(problem.tap_rows, 4);
  const double rows = static_cast<double>(problem.rows * problem.tap_rows) / static_cast<double>(4 * tap_quads);
  const double size = rows * static_cast<double>(problem.columns * problem.k * problem.segments);
  const bool outer_are_fast = has_many_registers(target) && problem.tap_rows >= 16;
  const double least = outer_are_fast ? 115 : 25;  // flops for each byte that is read and written
  return 2 * size > least * bytes;
}

/// `count` in parts of at most `most`, as even as they can be: the largest.
std::int64_t even_part(std::int64_t count, std::int64_t most) {
  return plan::divided_up(count, plan::divided_up(count, most));
}

/// Quads of k that outer products of segments of `length` add at a time at most: as many short lines of positions as 8
/// quads hold, two of up to 8, one of up to 16, and of a longer one a part.
std::int64_t most_outer_step(std::int64_t length) {
  constexpr std::int64_t least = 8;
  constexpr std::int64_t most = 16;
  if (length > most) return least;
  return std::max(least, 2 * length <= most ? 2 * length : length);
}

/// Tiles of as many quads of rows as have 16 sums for each invocation, padding not counted: of one tap, unless that
/// fills half of such a tile at most, and its channels end in padding, whose zeros are read where there is no pixel.
GemmKernel of_outer_products(const Problem& problem, Share share) {
  constexpr std::int64_t sums = 16;
  GemmKernel kernel = by_address(problem, "outer", problem.operands, share, sums);
  const std::int64_t rows_of_quad = std::min<std::int64_t>(problem.tap_rows, 4);
  const std::int64_t tap_quads = plan::divided_up(problem.tap_rows, 4);
  const std::int64_t quads = problem.rows / (tap_quads * 4) * tap_quads;
  const std::int64_t most_quads = sums / (share.columns * rows_of_quad);
  const bool padded = problem.operands == Operands::pixels_row && problem.tap_rows % 4 != 0 && problem.batches == 1;
  const bool one_tap = !padded || 2 * tap_quads > most_quads;
  const std::int64_t group = one_tap ? tap_quads : quads;
  const std::int64_t row_quads = even_part(group, most_quads);
  kernel.tile_rows = 4 * row_quads;
  kernel.row_group = 4 * group;
  set_steps(kernel, problem, share, most_outer_step(plan::divided_up(problem.k, 4)));
  const bool full = group % row_quads == 0 && fills_tiles(problem, kernel);
  for (const std::int64_t constant : {row_quads, rows_of_quad, std::int64_t{one_tap}, std::int64_t{full}})
    kernel.constants.push_back(static_cast<std::uint32_t>(constant));
  kernel.constants.push_back(length_of_steps(kernel, problem));
  for (const std::int64_t constant : {problem.segments_in_row, problem.a_apart, problem.b_apart, problem.margin})
    kernel.constants.push_back(static_cast<std::uint32_t>(constant));
  kernel.other_rounds = 4;
  return kernel;
}

/// Where C is large, tiles read their operands again from memory, which are not packed. Where a tap has few elements of
/// C, finding each tap's pixel takes longer. Narrow operands are converted first, which pays if each is used often.
bool outer_products_pay(const Problem& problem) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 20;
  constexpr double least_flops = 64;  // for each element of an operand in f16 or bf16
  const auto products = static_cast<double>(problem.rows * problem.columns) *
                        static_cast<double>(problem.k * problem.segments * problem.batches);
  const bool converted = is_narrow(problem.dtype);
  return problem.rows * problem.columns < most_elements && problem.tap_rows * problem.columns >= 24 &&
         (!converted || 2 * products >= least_flops * 8 * static_cast<double>(problem.operand_quads));
}

}  // namespace

UniformKernels uniform_kernels(const plan::Target& target, const Problem& problem) {
  UniformKernels found;
  const std::uint32_t lanes = target.subgroups.size;
  if (!has_uniform_loads(target) || problem.float16_partials || !fits_panels(target, problem, 4 * lanes)) return found;
  const bool pay = planes_pay(target, problem);
  const bool planes = pay || (problem.operands == Operands::pixels_row && fits_planes(target, problem));
  if (problem.operands == Operands::pixels_row && !planes) return found;
  found.kernels = tiles_by_address(target, problem, planes);
  found.pay = planes ? pay : panels_pay(target, problem, found.kernels.front());
  return found;
}

UniformKernels outer_kernels(const plan::Target& target, const Problem& problem) {
  UniformKernels found;
  const bool across = problem.operands == Operands::col_row || problem.operands == Operands::pixels_row;
  const std::uint32_t lanes = target.subgroups.size;
  if (!has_uniform_loads(target) || !across || problem.float16_partials) return found;
  // Where operands in f32 have no one address, or the columns of a row of B do not fill all lanes, others must do.
  const bool fits = has_address(target, problem.operand_quads) && plan::divided_up(problem.columns, 4) * 4 % lanes == 0;
  if (!fits) return found;
  for (const std::uint32_t columns : {2U, 4U, 1U})
    found.kernels.push_back(of_outer_products(problem, {lanes, columns}));
  sort_by_columns(found.kernels, problem);
  found.pay = outer_products_pay(problem) && !planes_pay(target, problem);
  return found;
}

}  // namespace halfstep::ops
