#include "ops/attention/attention_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "graph/dtype.h"
#include "plan/lowering.h"

namespace halfstep::ops {
namespace {

constexpr std::int64_t side = 8;  ///< invocations along a side of attention_tile.glsl's workgroups, and quads of a part

std::string shader_of(AttentionPass pass, DType dtype, std::string_view kernel) {
  return fmt::format("attention.{}.{}.{}", name(pass), graph::info(dtype).words, kernel);
}

/// attention_rows.glsl: in each tile, a loop over its rows for the scores and one for each of the sums.
AttentionKernel rows_kernel(const plan::Target& target, AttentionPass pass, const AttentionExtents& extents,
                            DType dtype) {
  AttentionKernel kernel;
  kernel.rows_each = 2;
  kernel.name = "rows";
  kernel.shader = shader_of(pass, dtype, kernel.name);
  kernel.local_size = target.subgroups.hand_over() ? target.subgroups.size : 4;
  kernel.tile = 8;
  kernel.own_rows = kernel.rows_each * kernel.local_size;
  kernel.tile_rounds = 1 + (pass == AttentionPass::keys ? 3 : 2) * (kernel.tile + 1);
  kernel.other_rounds = kernel.rows_each * (result_quads(pass, extents) + 2) + 2;
  return kernel;
}

/// attention_tile.glsl: in each tile, loops over parts of eight quads for every product of rows, with `part_rounds`
/// more in each part of those and of the sums.
AttentionKernel tile_kernel(AttentionPass pass, const AttentionExtents& extents, DType dtype,
                            std::int64_t part_rounds) {
  const std::int64_t c_parts = plan::divided_up(extents.c_quads, side);
  const std::int64_t d_parts = plan::divided_up(extents.d_quads, side);
  const auto products = [&](std::int64_t parts) { return parts * (part_rounds + 1) + 1; };
  const auto sums = [&](std::int64_t parts) { return parts * part_rounds; };
  AttentionKernel kernel;
  kernel.name = "tile";
  kernel.shader = shader_of(pass, dtype, kernel.name);
  kernel.local_size = side * side;
  kernel.rows_each = 4;
  kernel.own_rows = kernel.rows_each * side;
  kernel.tile = 4 * side;
  kernel.tile_rounds = 1 + products(c_parts);
  if (pass != AttentionPass::forward) kernel.tile_rounds += products(d_parts) + sums(c_parts);
  if (pass != AttentionPass::queries) kernel.tile_rounds += sums(d_parts);
  kernel.other_rounds = 4 * (c_parts + d_parts) + 4;
  return kernel;
}

/// Those of attention_units.glsl, one for each shape of fragment that divides a tile.
std::vector<AttentionKernel> unit_kernels(const plan::Target& target, AttentionPass pass,
                                          const AttentionExtents& extents, DType dtype) {
  std::vector<AttentionKernel> found;
  const std::uint32_t size = target.subgroups.size;
  if (dtype != DType::f16 || size == 0 || side * side % size != 0) return found;
  for (const plan::MatrixShape& shape : target.matrix_shapes) {
    constexpr std::uint32_t tile = 4 * side;
    const bool fits = shape.type == plan::MatrixType::float16 && !shape.float16_sums && tile % shape.rows == 0 &&
                      tile % shape.columns == 0 && tile % shape.k == 0 && shape.columns % 4 == 0 && shape.k % 4 == 0;
    if (!fits) continue;
    AttentionKernel kernel = tile_kernel(pass, extents, dtype, tile / shape.k + 1);
    kernel.name = fmt::format("units{}x{}x{}", shape.rows, shape.columns, shape.k);
    kernel.shader = fmt::format("attention_cooperative.{}", name(pass));
    kernel.risky = true;
    kernel.constants = {shape.rows, shape.columns, shape.k, static_cast<std::uint32_t>(side * side) / size};
    found.push_back(std::move(kernel));
  }
  return found;
}

}  // namespace

std::string_view name(AttentionPass pass) {
  constexpr std::array<std::string_view, 3> names{"forward", "queries", "keys"};
  return names[static_cast<std::size_t>(pass)];
}

std::int64_t result_quads(AttentionPass pass, const AttentionExtents& extents) {
  if (pass == AttentionPass::forward) return extents.d_quads;
  if (pass == AttentionPass::queries) return extents.c_quads;
  return extents.c_quads + extents.d_quads;
}

std::vector<AttentionKernel> attention_kernels(const plan::Target& target, AttentionPass pass,
                                               const AttentionExtents& extents, DType dtype) {
  std::vector<AttentionKernel> found = unit_kernels(target, pass, extents, dtype);
  found.push_back(tile_kernel(pass, extents, dtype, side + 1));
  if (target.cpu) found.insert(found.begin(), rows_kernel(target, pass, extents, dtype));
  const auto named = std::ranges::find(found, target.attention_kernel, &AttentionKernel::name);
  if (named != found.end()) return {*named};
  if (target.cpu) found.erase(found.begin() + 1, found.end());
  return found;
}

}  // namespace halfstep::ops
