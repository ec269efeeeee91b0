#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "graph/dtype.h"
#include "ops/elementwise/cast.h"
#include "ops/kernel.h"
#include "ops/mlp/mlp.h"

// shaders/mlp/mlp_rows.comp, for software drivers.
namespace halfstep::ops {
namespace {

using plan::Access;

constexpr std::int64_t most_width = 64;  ///< of hidden layers, whose code is unrolled
constexpr std::size_t most_steps = 6;    ///< of mlp_activation.glsl
constexpr std::uint32_t local_size = 64;

std::int64_t quads(std::int64_t columns) {
  return plan::divided_up(columns, 4);
}

/// The sizes of a network.
struct Extents {
  std::int64_t rows, in, width, out, hidden;

  std::int64_t k(std::int64_t layer) const { return layer == 0 ? in : width; }
  std::int64_t n(std::int64_t layer) const { return layer == hidden ? out : width; }
  /// Of the packed weights of a layer, with its bias.
  std::int64_t weight_quads(std::int64_t layer) const { return (1 + 4 * quads(k(layer))) * quads(n(layer)); }
};

Extents extents_of(const plan::Lowering& out, const MlpTensors& tensors) {
  const plan::Layout x = plan::layout(out.type(tensors.x).shape);
  return {x.rows, x.columns, out.type(tensors.weights.front()).shape[1], out.type(tensors.weights.back()).shape[1],
          static_cast<std::int64_t>(tensors.weights.size()) - 1};
}

/// An activation as steps on register 0, its argument.
plan::Expression steps_of(const MlpActivation& activation) {
  plan::Expression expression;
  const std::vector<Number> argument{{expression, 0}};
  expression.value = activation.formulas.result(argument).at();
  return expression;
}

/// The specialization constants of mlp_activation.glsl: the value's register, and the steps, whose results are in
/// registers 1, 2, ...
std::vector<std::uint32_t> activation_constants(const MlpActivation& activation) {
  const plan::Expression expression = steps_of(activation);
  const auto at = [](plan::Register r) { return r < plan::first_step ? r : 1U + r - plan::first_step; };
  std::vector<std::uint32_t> constants{at(expression.value)};
  for (const plan::Step& step : expression.steps) {
    constants.push_back(static_cast<std::uint32_t>(step.op) | at(step.a) << 8 | at(step.b) << 16);
    constants.push_back(std::bit_cast<std::uint32_t>(step.constant));
  }
  constants.resize(1 + 2 * most_steps);
  return constants;
}

/// All weights and biases in f32, one after the other: one dispatch for each layer.
plan::TensorId lower_pack(plan::Lowering& out, const MlpTensors& tensors, const Extents& extents) {
  struct Push {
    std::uint32_t count, row_quads, k, first;
  };
  std::int64_t all = 0;
  for (std::int64_t layer = 0; layer <= extents.hidden; ++layer) all += extents.weight_quads(layer);
  const plan::TensorId packed = out.workspace("weights", {DType::f32, {all, 4}});
  std::int64_t first = 0;
  for (std::int64_t layer = 0; layer <= extents.hidden; ++layer) {
    const plan::TensorId weight = tensors.weights[static_cast<std::size_t>(layer)];
    const std::optional<plan::TensorId> bias = tensors.biases[static_cast<std::size_t>(layer)];
    const Push push{index32(out, extents.weight_quads(layer)), index32(out, quads(extents.n(layer))),
                    index32(out, extents.k(layer)), index32(out, first)};
    dispatch_flat(out, fmt::format("mlp_pack.{}", graph::info(out.type(weight).dtype).words), push.count, push,
                  {{weight, Access::read}, {bias.value_or(weight), Access::read}, {packed, Access::write}},
                  {bias.has_value()});
    first += extents.weight_quads(layer);
  }
  return packed;
}

/// Loop rounds of an invocation: over the quads of x, the layers and the quads of y.
std::int64_t rounds_of(const Extents& extents) {
  return quads(extents.in) + extents.hidden + quads(extents.out) + 3;
}

double flops_of(const Extents& extents) {
  double products = 0;
  for (std::int64_t layer = 0; layer <= extents.hidden; ++layer) {
    products += static_cast<double>(extents.rows * extents.k(layer)) * static_cast<double>(extents.n(layer));
  }
  return 2 * products;
}

}  // namespace

bool has_mlp_kernel(const plan::Lowering& out, const MlpActivation& activation, const MlpTensors& tensors) {
  const plan::Target& target = out.target();
  const Extents extents = extents_of(out, tensors);
  return target.cpu && target.uniform_loads && extents.width <= most_width &&
         steps_of(activation).steps.size() <= most_steps && rounds_of(extents) <= target.max_rounds;
}

void lower_mlp(plan::Lowering& out, const MlpActivation& activation, const MlpTensors& tensors) {
  struct Push {
    std::uint32_t rows, in_quads, out_columns, out_quads;
  };
  const Extents extents = extents_of(out, tensors);
  const plan::TensorId x = in_f32(out, tensors.x);
  const plan::TensorId packed = lower_pack(out, tensors, extents);
  index32(out, 2 * plan::layout(out.type(x).shape).quads());
  index32(out, 2 * plan::layout(out.type(tensors.y).shape).quads());
  std::vector<std::uint32_t> constants{local_size};
  const std::vector<std::uint32_t> steps = activation_constants(activation);
  constants.insert(constants.end(), steps.begin(), steps.end());
  constants.push_back(index32(out, quads(extents.width)));
  constants.push_back(index32(out, extents.hidden));
  plan::Expression expression = result_expression(out, tensors.y, 2, 3);
  expression.noise = false;
  expression.rows_known = true;
  const Push push{index32(out, extents.rows), index32(out, quads(extents.in)), index32(out, extents.out),
                  index32(out, quads(extents.out))};
  out.dispatch(
      {.label = {},
       .shader = fmt::format("mlp_rows.{}", graph::info(out.type(tensors.y).dtype).words),
       .constants = std::move(constants),
       .push = plan::push_bytes(push),
       .operands = {{x, Access::read, false, true}, {packed, Access::read, false, true}, {tensors.y, Access::write}},
       .groups = plan::groups_for(out.target(), extents.rows, local_size),
       .rounds = rounds_of(extents),
       .expression = std::move(expression),
       .flops = flops_of(extents)});
}

}  // namespace halfstep::ops
