#include "ops/gemm/gemm_panels.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "graph/dtype.h"
#include "ops/elementwise/cast.h"
#include "ops/kernel.h"
#include "ops/shape/slice.h"

namespace halfstep::ops {
namespace {

/// k summed over all segments, each in whole quads.
std::int64_t whole_k(const Gemm& gemm) {
  return gemm.segments * plan::divided_up(gemm.k, 4) * 4;
}

/// In quads.
struct Panels {
  std::int64_t count;  ///< per batch
  std::int64_t batch;  ///< distance between batches
  std::int64_t all;
  std::int64_t zeros;  ///< before the panels: as many as a segment has, rounded up to fours
};

Panels panels_of(const Gemm& gemm, std::int64_t panel_columns) {
  Panels panels{};
  panels.count = plan::divided_up(gemm.columns, panel_columns);
  panels.batch = panels.count * whole_k(gemm) * panel_columns / 4;
  panels.all = panels.batch * gemm.batches;
  panels.zeros = plan::divided_up(gemm.k, 16) * 4;
  return panels;
}

/// What A's images are: those of the patches, or one whose line of positions is k.
Patches patches_of(const Gemm& gemm) {
  if (gemm.operands == Operands::pixels_row) return gemm.patches;
  return {.grid = {1, gemm.k}, .image = {1, gemm.k}, .channels = gemm.rows};
}

/// Of the patches of a GEMM whose rows are (tap, channel), with channels in whole quads, or a matrix's.
std::int64_t taps_of(const Gemm& gemm, const Patches& patches) {
  return plan::divided_up(gemm.rows, plan::divided_up(patches.channels, 4) * 4);
}

/// {height, width} of a plane: from the first pixel that a tap of a position is at to the last one.
Pair plane_size(const Gemm& gemm, const Patches& patches) {
  const Pair kernel{taps_of(gemm, patches) / patches.kernel_width, patches.kernel_width};
  Pair size{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    size[axis] = (patches.grid[axis] - 1) * patches.step[axis] + (kernel[axis] - 1) * patches.tap_step[axis] + 1;
  }
  return size;
}

std::int64_t images_of(const plan::Lowering& out, const Gemm& gemm) {
  return gemm.operands == Operands::pixels_row ? out.type(gemm.a).shape[0] : 1;
}

/// `gemm` with A as planes: its rows are (tap, channel) without padding.
Gemm with_planes(plan::Lowering& out, const Gemm& gemm) {
  struct Push {
    std::uint32_t count, channels;
    std::uint32_t image[2];
    std::int32_t origin[2];
    std::uint32_t lines, line_quads;
  };
  const auto size = [&](std::int64_t value) { return index32(out, value); };
  const Patches patches = patches_of(gemm);
  const Pair plane = plane_size(gemm, patches);
  const std::int64_t images = images_of(out, gemm);
  const std::int64_t quads = plan::divided_up(patches.channels, 4);
  const std::int64_t line_quads = plan::divided_up(plane[1], 4);
  Gemm result = gemm;
  result.operands = Operands::planes_row;
  result.rows = taps_of(gemm, patches) * patches.channels;
  result.a = out.workspace("planes", {DType::f32, {images, patches.channels, plane[0], plane[1]}});
  result.patches = patches;
  result.patches.image = plane;
  result.patches.offset = {0, 0};
  const std::int64_t count = images * plane[0] * line_quads * quads;
  const Push push{size(count),
                  size(patches.channels),
                  {size(patches.image[0]), size(patches.image[1])},
                  {static_cast<std::int32_t>(patches.offset[0]), static_cast<std::int32_t>(patches.offset[1])},
                  size(plane[0]),
                  size(line_quads)};
  dispatch_flat(out, fmt::format("gemm_planes.{}", graph::info(out.type(gemm.a).dtype).words), count, push,
                {{gemm.a, plan::Access::read}, {result.a, plan::Access::write}}, {}, {.push_is_known = true});
  return result;
}

/// What the taps of all positions cover: from a first pixel, which may be before the image, so many.
struct Covered {
  Pair first;
  Pair pixels;
};

bool is_of_patches(const Gemm& gemm) {
  const bool of_patches = gemm.operands == Operands::patches_row || gemm.operands == Operands::patches_col;
  return of_patches && !gemm.patches.divided();
}

/// By the patches of a GEMM that is_of_patches.
Covered covered(const Gemm& gemm) {
  const Patches& patches = gemm.patches;
  const Pair kernel{gemm.segments / patches.kernel_width, patches.kernel_width};
  Covered result{};
  for (std::size_t axis = 0; axis < 2; ++axis) {
    const std::int64_t last_tap = (kernel[axis] - 1) * patches.tap_step[axis];
    result.first[axis] = patches.offset[axis] + std::min<std::int64_t>(last_tap, 0);
    result.pixels[axis] = (patches.grid[axis] - 1) * patches.step[axis] + std::abs(last_tap) + 1;
  }
  return result;
}

/// `gemm` with borders around A's images.
Gemm with_borders(plan::Lowering& out, const Gemm& gemm) {
  const Covered pixels = covered(gemm);
  const Shape images = out.type(gemm.a).shape;
  Gemm result = gemm;
  result.a = out.workspace("bordered", {DType::f32, {images[0], pixels.pixels[0], pixels.pixels[1], images[3]}});
  lower_window(out, gemm.a, result.a, {{}, {.offset = pixels.first[0]}, {.offset = pixels.first[1]}, {}});
  result.patches.image = pixels.pixels;
  for (std::size_t axis = 0; axis < 2; ++axis) result.patches.offset[axis] -= pixels.first[axis];
  return result;
}

/// `gemm` with A in f32, with borders if `kernel` reads them.
Gemm widened(plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel) {
  Gemm result = gemm;
  result.operands = with_panels(gemm.operands);
  result.a = in_f32(out, gemm.a);
  return kernel.bordered ? with_borders(out, result) : result;
}

}  // namespace

std::int64_t plane_quads(const plan::Lowering& out, const Gemm& gemm) {
  const bool across = gemm.operands == Operands::pixels_row || gemm.operands == Operands::col_row;
  if (!across || gemm.batches != 1) return 0;
  const Patches patches = patches_of(gemm);
  const Pair size = plane_size(gemm, patches);
  const std::int64_t planes = images_of(out, gemm) * patches.channels;
  return planes * size[0] * plan::divided_up(size[1], 4);
}

bool taps_inside(const Gemm& gemm) {
  if (!is_of_patches(gemm)) return false;
  const Covered pixels = covered(gemm);
  bool inside = true;
  for (std::size_t axis = 0; axis < 2; ++axis) {
    inside &= pixels.first[axis] >= 0 && pixels.first[axis] + pixels.pixels[axis] <= gemm.patches.image[axis];
  }
  return inside;
}

std::int64_t margin(const Gemm& gemm) {
  if (!is_of_images(gemm.operands) || gemm.patches.divided()) return 0;
  const Patches& patches = gemm.patches;
  const std::int64_t positions = patches.grid[1];
  const auto [least, most] =
      std::minmax({patches.offset[1], patches.offset[1] + (patches.kernel_width - 1) * patches.tap_step[1]});
  const std::int64_t before = plan::divided_up(std::max<std::int64_t>(-least, 0), patches.step[1]);
  const std::int64_t inside = plan::divided_up(std::max<std::int64_t>(patches.image[1] - most, 0), patches.step[1]);
  return std::min(std::max(before, positions - inside), positions);
}

std::int64_t bordered_quads(const plan::Lowering& out, const Gemm& gemm) {
  const Shape& images = out.type(gemm.a).shape;
  if (!is_of_patches(gemm) || images.size() != 4) return 0;
  const Pair pixels = covered(gemm).pixels;
  return images[0] * pixels[0] * pixels[1] * plan::divided_up(images[3], 4);
}

Operands with_panels(Operands operands) {
  if (operands == Operands::row_col) return Operands::row_row;
  if (operands == Operands::col_col) return Operands::col_row;
  if (operands == Operands::patches_col) return Operands::patches_row;
  return operands;
}

Gemm lower_panels(plan::Lowering& out, const Gemm& gemm, const GemmKernel& kernel) {
  struct Push {
    std::uint32_t count, columns, k, segments, panels, pitch, b_batch;
  };
  const auto size = [&](std::int64_t value) { return index32(out, value); };
  const bool by_row = !b_lies_along_k(gemm.operands);
  const Panels panels = panels_of(gemm, kernel.tile_columns);
  Gemm result = kernel.planes ? with_planes(out, gemm) : widened(out, gemm, kernel);
  if (!kernel.panels) return result;
  result.b = out.workspace("panels", {DType::f32, {panels.zeros + panels.all, 4}});
  result.b_batch = panels.batch;
  const std::int64_t count = panels.all / (by_row ? 1 : 4);
  const Push push{size(count),         size(gemm.columns), size(gemm.k),
                  size(gemm.segments), size(panels.count), size(plan::layout(out.type(gemm.b).shape).quads_per_row()),
                  size(gemm.b_batch)};
  dispatch_flat(out,
                fmt::format("gemm_panels.{}.{}", by_row ? "row" : "col", graph::info(out.type(gemm.b).dtype).words),
                count, push, {{gemm.b, plan::Access::read}, {result.b, plan::Access::write}},
                {size(kernel.tile_columns / 4)}, {.push_is_known = true});
  return result;
}

}  // namespace halfstep::ops
