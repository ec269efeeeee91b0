#include "ops/mlp/mlp_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "graph/dtype.h"
#include "ops/kernel.h"
#include "ops/mlp/mlp_pack.h"
#include "ops/mlp/mlp_rows.h"
#include "ops/mlp/mlp_tile.h"

namespace halfstep::ops {
namespace {

constexpr std::uint32_t threads = 128;  ///< of a workgroup, at most

std::vector<TensorType> types_of(const plan::Lowering& out, const MlpForm& form) {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < form.count(); ++i) types.push_back(out.input_type(i));
  return types;
}

/// The loop rounds of a kernel of mlp_tile.glsl at the most: each chunk of x, hidden layer and chunk of y loads rows,
/// multiplies them by parts of the weights, and finishes its sums.
std::int64_t rounds_of(const MlpExtents& extents, std::int64_t quads, std::int64_t load, std::int64_t parts,
                       std::int64_t part, std::int64_t finish) {
  const std::int64_t products =
      plan::divided_up(extents.in, 4 * quads) + extents.hidden + plan::divided_up(extents.out, 4 * quads);
  return products * (load + 2 + parts * (part + 1) + 1 + finish + 2) + 3;
}

/// mlp_products.glsl; nothing if the device has not the shared memory.
std::optional<MlpTile> plain_tile(const plan::Target& target, const MlpExtents& extents) {
  constexpr std::int64_t each = 8;
  MlpTile tile;
  tile.quads = plan::divided_up(extents.width, 4);
  const std::int64_t part = tile.quads > 16 ? 8 : 16;
  const std::int64_t down = std::min<std::int64_t>(threads / tile.quads, 32);
  tile.rows = down * each;
  tile.local_size = static_cast<std::uint32_t>(down * tile.quads);
  const std::int64_t bytes = (tile.rows * (tile.quads + 1) + part * tile.quads) * 16;
  if (bytes > target.shared_memory_bytes) return std::nullopt;
  tile.rounds = rounds_of(extents, tile.quads, each, plan::divided_up(4 * tile.quads, part),
                          plan::divided_up(part, down) + 1 + part / 4 + 1, each);
  tile.constants = {static_cast<std::uint32_t>(part), static_cast<std::uint32_t>(down)};
  return tile;
}

/// mlp_units.glsl, for one shape of fragment.
std::optional<MlpTile> unit_tile(const plan::Target& target, const MlpExtents& extents,
                                 const plan::MatrixShape& shape) {
  const std::uint32_t size = target.subgroups.size;
  if (size == 0 || shape.float16_sums || shape.columns % 4 != 0 || shape.k % 4 != 0) return std::nullopt;
  MlpTile tile{.units = true};
  const std::int64_t unit = std::lcm(std::lcm(std::int64_t{16}, std::int64_t{shape.columns}), std::int64_t{shape.k});
  const std::int64_t width = plan::divided_up(extents.width, unit) * unit;
  const std::int64_t part = width % 32 == 0 ? 32 : 16;
  tile.quads = width / 4;
  tile.rows = width > 64 ? 64 : 128;
  if (tile.rows % shape.rows != 0 || part % shape.k != 0 || size > threads) return std::nullopt;
  const std::int64_t fragments = tile.rows / shape.rows;
  std::int64_t subgroups = std::min<std::int64_t>(threads / size, fragments);
  while (fragments % subgroups != 0) --subgroups;
  tile.local_size = static_cast<std::uint32_t>(subgroups) * size;
  const std::int64_t bytes =
      tile.rows * (tile.quads + 2) * 8 + width * (part / 4 + 2) * 8 + tile.rows * shape.columns * 4;
  if (bytes > target.shared_memory_bytes) return std::nullopt;
  const std::int64_t finish = plan::divided_up(tile.rows * shape.columns / 4, tile.local_size) + 1;
  tile.rounds = rounds_of(extents, tile.quads, plan::divided_up(tile.rows * tile.quads, tile.local_size), width / part,
                          plan::divided_up(tile.quads * part, tile.local_size) + 1 + part / shape.k + 1,
                          width / shape.columns * finish);
  tile.constants = {static_cast<std::uint32_t>(part),
                    static_cast<std::uint32_t>(fragments / subgroups),
                    shape.rows,
                    shape.columns,
                    shape.k,
                    static_cast<std::uint32_t>(subgroups)};
  return tile;
}

/// Whether each tensor fits one binding: kernels with so many of them leave few for windows.
bool fits_bindings(const plan::Lowering& out, const MlpExtents& extents) {
  std::uint64_t largest = mlp_packed_bytes(extents);
  for (std::size_t i = 0; i < out.input_count(); ++i) largest = std::max(largest, plan::byte_size(out.input_type(i)));
  for (std::size_t i = 0; i < out.output_count(); ++i)
    largest = std::max(largest, plan::byte_size(out.type(out.output(i))));
  return largest <= out.target().max_storage_range;
}

/// Whether kernels of networks round as is asked for: they round to nearest, and their sums are f32, of one term after
/// the other (the backward pass sums over y's columns).
bool round_as_asked(const plan::Lowering& out, const MlpExtents& extents) {
  if (std::max(extents.in, extents.out) > longest_sum) return false;
  return !(is_narrow(out.input_type(0).dtype) && out.storing().stochastic) && out.partials().matmul == DType::f32;
}

/// Whether kernels of mlp_tile.glsl compute what is asked for.
bool suits_tiles(const plan::Lowering& out, MlpPass pass, const MlpForm& form, const MlpExtents& extents) {
  const plan::Target& target = out.target();
  const UnaryFormulas& formulas = form.activation.formulas;
  const bool steps = pass == MlpPass::backward ? activation_constants(formulas.gradient, 2).has_value()
                                               : activation_constants(formulas.result, 1).has_value();
  return steps && round_as_asked(out, extents) && target.max_storage_buffers >= mlp_storage_buffers &&
         target.max_invocations >= threads && fits_bindings(out, extents);
}

std::vector<MlpKernel> tiles(const plan::Lowering& out, MlpPass pass, const MlpForm& form) {
  const plan::Target& target = out.target();
  const MlpExtents extents(form, types_of(out, form));
  std::vector<MlpKernel> found;
  if (!suits_tiles(out, pass, form, extents)) return found;
  const auto add = [&](std::string name, const std::optional<MlpTile>& tile) {
    if (tile && tile->rounds <= target.max_rounds) found.push_back({std::move(name), tile});
  };
  if (out.input_type(0).dtype == DType::f16) {
    for (const plan::MatrixShape& shape : target.matrix_shapes) {
      if (shape.type != plan::MatrixType::float16) continue;
      add(fmt::format("units{}x{}x{}", shape.rows, shape.columns, shape.k), unit_tile(target, extents, shape));
    }
  }
  add("tile", plain_tile(target, extents));
  return found;
}

}  // namespace

std::vector<MlpKernel> mlp_kernels(const plan::Lowering& out, MlpPass pass, const MlpForm& form) {
  const plan::Target& target = out.target();
  std::vector<MlpKernel> found = tiles(out, pass, form);
  // A GPU is fastest by matrix units; what is measured beside that is the layers one by one, then other tiles.
  const std::size_t first = std::min<std::size_t>(target.cpu ? 0 : 1, found.size());
  found.insert(found.begin() + static_cast<std::ptrdiff_t>(first), {"layers"});
  const MlpExtents extents(form, types_of(out, form));
  if (pass == MlpPass::prediction && round_as_asked(out, extents) && has_mlp_rows(out, form, extents)) {
    found.insert(found.begin(), {mlp_rows_name});
  }
  const auto named = std::ranges::find(found, target.mlp_kernel, &MlpKernel::name);
  if (named != found.end()) return {*named};
  if (target.cpu) found.erase(found.begin() + 1, found.end());
  return found;
}

}  // namespace halfstep::ops
