#include "ops/mlp/mlp_tile.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "ops/kernel.h"
#include "ops/mlp/mlp_pack.h"

namespace halfstep::ops {
namespace {

using plan::Access;

/// Columns of x or y in quads, with zeros up to whole chunks as wide as a hidden layer.
std::int64_t padded(std::int64_t columns, std::int64_t chunk) {
  return plan::divided_up(quads(columns), chunk) * chunk;
}

/// A matrix from as many columns to as many others, as the kernel reads it: by the columns of its result where units
/// do.
PackedLayer packed_layer(const MlpTile& tile, MlpLayer<plan::TensorId> layer, std::int64_t bias_quads,
                         std::int64_t from_quads, std::int64_t to_quads) {
  return {layer, bias_quads, 4 * (tile.units ? to_quads : from_quads), tile.units ? from_quads : to_quads};
}

plan::TensorId lower_pack(plan::Lowering& out, const MlpTile& tile, std::span<const PackedLayer> layers,
                          bool transposed) {
  return lower_pack(out, layers, transposed != tile.units, tile.units ? PackedAs::stored : PackedAs::wide);
}

std::vector<std::uint32_t> constants_of(const MlpTile& tile, std::int64_t hidden, std::int64_t width, bool flag,
                                        const std::vector<std::uint32_t>& steps) {
  std::vector<std::uint32_t> constants{tile.local_size};
  constants.insert(constants.end(), steps.begin(), steps.end());
  constants.insert(constants.end(), {static_cast<std::uint32_t>(tile.quads), static_cast<std::uint32_t>(hidden),
                                     static_cast<std::uint32_t>(width), flag});
  constants.insert(constants.end(), tile.constants.begin(), tile.constants.end());
  return constants;
}

/// The operands of as many bindings: those of `tensors`, and one of them again where there are fewer.
void add_operands(std::vector<plan::Operand>& operands, const std::vector<plan::TensorId>& tensors, Access access,
                  std::size_t bindings) {
  for (std::size_t i = 0; i < bindings; ++i) operands.push_back({tensors[std::min(i, tensors.size() - 1)], access});
}

/// A dispatch of one workgroup for each tile of rows.
void dispatch_tiles(plan::Lowering& out, const MlpTile& tile, std::int64_t rows, plan::Dispatch dispatch,
                    plan::TensorId result) {
  plan::Expression expression = result_expression(out, result, 2, static_cast<std::uint32_t>(dispatch.operands.size()));
  expression.noise = false;
  expression.rows_known = true;
  dispatch.expression = std::move(expression);
  dispatch.rounds = tile.rounds;
  dispatch.groups =
      plan::groups_for(out.target(), plan::divided_up(rows, tile.rows) * tile.local_size, tile.local_size);
  out.dispatch(std::move(dispatch));
}

}  // namespace

std::uint64_t mlp_packed_bytes(const MlpExtents& extents) {
  std::int64_t elements = 0;
  for (std::int64_t layer = 0; layer <= extents.hidden; ++layer) {
    elements += (extents.k(layer) + most_mlp_width) * (extents.n(layer) + most_mlp_width);
  }
  return static_cast<std::uint64_t>(elements) * sizeof(float);
}

void lower_mlp_forward(plan::Lowering& out, const MlpForm& form, const MlpTile& tile, const MlpForward& operands) {
  struct Push {
    std::uint32_t rows, in_quads, in_padded, out_columns, out_quads, out_padded;
  };
  const plan::Layout x = plan::layout(out.type(operands.x).shape);
  const plan::Layout y = plan::layout(out.type(operands.y).shape);
  const auto hidden = static_cast<std::int64_t>(form.hidden());
  const std::int64_t width = out.type(operands.layers.front().weight).shape[1];
  const std::int64_t in_padded = padded(x.columns, tile.quads);
  const std::int64_t out_padded = padded(y.columns, tile.quads);
  std::vector<PackedLayer> layers;
  double products = 0;
  for (const MlpLayer<plan::TensorId>& layer : operands.layers) {
    const bool last = layers.size() == form.hidden();
    layers.push_back(packed_layer(tile, layer, last ? out_padded : tile.quads, layers.empty() ? in_padded : tile.quads,
                                  last ? out_padded : tile.quads));
    products += static_cast<double>(elements(out.type(layer.weight).shape));
  }
  const plan::TensorId packed = lower_pack(out, tile, layers, false);
  const bool keeps = !operands.kept.empty();
  std::vector<plan::Operand> all{{operands.x, Access::read}, {packed, Access::read}, {operands.y, Access::write}};
  if (keeps) {
    const auto half = operands.kept.begin() + hidden;
    add_operands(all, {operands.kept.begin(), half}, Access::write, most_mlp_hidden);
    add_operands(all, form.keeps_inputs() ? std::vector(half, operands.kept.end()) : operands.kept, Access::write,
                 most_mlp_hidden);
  }
  const DType dtype = out.type(operands.x).dtype;
  const std::string keep = keeps ? "layers" : "nothing";
  const Push push{index32(out, x.rows),    index32(out, quads(x.columns)), index32(out, in_padded),
                  index32(out, y.columns), index32(out, quads(y.columns)), index32(out, out_padded)};
  index32(out, std::max({x.quads(), y.quads(), x.rows * tile.quads}));
  dispatch_tiles(out, tile, x.rows,
                 {.label = {},
                  .shader = tile.units ? fmt::format("mlp_forward_cooperative.{}", keep)
                                       : fmt::format("mlp_forward.{}.{}", graph::info(dtype).words, keep),
                  .constants = constants_of(tile, hidden, width, form.keeps_inputs(),
                                            activation_constants(form.activation.formulas.result, 1).value()),
                  .push = plan::push_bytes(push),
                  .operands = std::move(all),
                  .flops = 2 * static_cast<double>(x.rows) * products},
                 operands.y);
}

void lower_mlp_backward(plan::Lowering& out, const MlpForm& form, const MlpTile& tile, const MlpBackward& operands) {
  struct Push {
    std::uint32_t rows, in_columns, in_quads, in_padded, out_quads, out_padded;
  };
  const plan::Layout dy = plan::layout(out.type(operands.dy).shape);
  const auto hidden = static_cast<std::int64_t>(form.hidden());
  const Shape first = out.type(operands.weights.front()).shape;
  const DType dtype = out.type(operands.dy).dtype;
  const std::int64_t in_padded = padded(first[0], tile.quads);
  const std::int64_t out_padded = padded(dy.columns, tile.quads);
  std::vector<PackedLayer> layers;
  double products = 0;
  for (std::int64_t layer = hidden; layer >= (operands.dx ? 0 : 1); --layer) {
    const plan::TensorId weight = operands.weights[static_cast<std::size_t>(layer)];
    layers.push_back(packed_layer(tile, {weight}, 0, layer == hidden ? out_padded : tile.quads,
                                  layer == 0 ? in_padded : tile.quads));
    products += static_cast<double>(elements(out.type(weight).shape));
  }
  const plan::TensorId packed = lower_pack(out, tile, layers, true);
  // A result that nobody wants has no quads.
  const plan::TensorId dx = operands.dx ? *operands.dx : out.workspace("no dx", {dtype, {1, 1}});
  std::vector<plan::Operand> all{{operands.dy, Access::read}, {packed, Access::read}, {dx, Access::write}};
  add_operands(all, operands.kept, Access::read, most_mlp_hidden);
  add_operands(all, operands.gradients, Access::write, most_mlp_hidden);
  const Push push{index32(out, dy.rows),   index32(out, first[0]),          index32(out, quads(first[0])),
                  index32(out, in_padded), index32(out, quads(dy.columns)), index32(out, out_padded)};
  index32(out, dy.rows * std::max({tile.quads, in_padded, out_padded}));
  dispatch_tiles(out, tile, dy.rows,
                 {.label = {},
                  .shader = tile.units ? std::string("mlp_backward_cooperative")
                                       : fmt::format("mlp_backward.{}", graph::info(dtype).words),
                  .constants = constants_of(tile, hidden, first[1], operands.dx.has_value(),
                                            activation_constants(form.activation.formulas.gradient, 2).value()),
                  .push = plan::push_bytes(push),
                  .operands = std::move(all),
                  .flops = 2 * static_cast<double>(dy.rows) * products},
                 dx);
}

}  // namespace halfstep::ops
