#include "ops/mlp/mlp_pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "graph/dtype.h"
#include "ops/kernel.h"

namespace halfstep::ops {
namespace {

using plan::Access;

constexpr std::size_t most_layers = 5;  ///< of a dispatch of mlp_pack.comp
constexpr std::size_t most_steps = 8;   ///< of mlp_activation.glsl

struct Push {
  struct Layer {
    std::uint32_t first = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t bias_quads = 0, rows = 0, quads = 0, k = 0, n = 0;
  };
  std::uint32_t end = 0;
  std::array<Layer, most_layers> layers{};
};

/// Packs up to `most_layers` from quad `first` on, and returns the quad after them.
std::int64_t pack_some(plan::Lowering& out, std::span<const PackedLayer> layers, bool transposed, PackedAs as,
                       plan::TensorId packed, std::int64_t first) {
  Push push;
  std::uint32_t biases = 0;
  const plan::TensorId any = layers.front().layer.weight;
  std::vector<plan::Operand> operands(2 * most_layers, {any, Access::read});
  std::int64_t next = first;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const PackedLayer& layer = layers[i];
    const Shape shape = out.type(layer.layer.weight).shape;
    push.layers[i] = {index32(out, next),        index32(out, layer.bias_quads), index32(out, layer.rows),
                      index32(out, layer.quads), index32(out, shape[0]),         index32(out, shape[1])};
    operands[2 * i].tensor = layer.layer.weight;
    operands[2 * i + 1].tensor = layer.layer.bias.value_or(any);
    if (layer.layer.bias) biases |= 1U << i;
    next += layer.all_quads();
  }
  push.end = index32(out, next);
  operands.push_back({packed, Access::write});
  dispatch_flat(out, fmt::format("mlp_pack.{}", graph::info(out.type(any).dtype).words), next - first, push, operands,
                {biases, transposed, as == PackedAs::stored});
  return next;
}

}  // namespace

plan::TensorId lower_pack(plan::Lowering& out, std::span<const PackedLayer> layers, bool transposed, PackedAs as) {
  std::int64_t all = 0;
  for (const PackedLayer& layer : layers) all += layer.all_quads();
  const DType dtype = as == PackedAs::wide ? DType::f32 : out.type(layers.front().layer.weight).dtype;
  const plan::TensorId packed = out.workspace("weights", {dtype, {all, 4}});
  std::int64_t first = 0;
  while (!layers.empty()) {
    const std::size_t some = std::min(layers.size(), most_layers);
    first = pack_some(out, layers.first(some), transposed, as, packed, first);
    layers = layers.subspan(some);
  }
  return packed;
}

std::optional<std::vector<std::uint32_t>> activation_constants(const Formula& formula, std::size_t arguments) {
  plan::Expression expression;
  std::vector<Number> numbers;
  for (std::size_t i = 0; i < arguments; ++i) numbers.emplace_back(expression, static_cast<plan::Register>(i));
  expression.value = formula(numbers).at();
  if (expression.steps.size() > most_steps) return std::nullopt;
  // Arguments are in registers 0 and 1 there, and results of steps in those after.
  const auto at = [](plan::Register r) { return r < plan::first_step ? r : 2U + r - plan::first_step; };
  std::vector<std::uint32_t> constants{at(expression.value)};
  for (const plan::Step& step : expression.steps) {
    constants.push_back(static_cast<std::uint32_t>(step.op) | at(step.a) << 8 | at(step.b) << 16);
    constants.push_back(std::bit_cast<std::uint32_t>(step.constant));
  }
  constants.resize(1 + 2 * most_steps);
  return constants;
}

}  // namespace halfstep::ops
