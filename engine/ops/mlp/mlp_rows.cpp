#include "ops/mlp/mlp_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/dtype.h"
#include "ops/elementwise/cast.h"
#include "ops/kernel.h"
#include "ops/mlp/mlp_pack.h"

namespace halfstep::ops {
namespace {

using plan::Access;

constexpr std::int64_t most_width = 64;  ///< of hidden layers, whose code is unrolled
constexpr std::uint32_t local_size = 64;

/// Loop rounds of an invocation: over the quads of x, the layers and the quads of y.
std::int64_t rounds_of(const MlpExtents& extents) {
  return quads(extents.in) + extents.hidden + quads(extents.out) + 3;
}

/// Whether x in f32 and all packed layers, which are read by address, have one.
bool has_addresses(const plan::Target& target, const MlpExtents& extents) {
  std::int64_t packed = 0;
  for (std::int64_t i = 0; i <= extents.hidden; ++i) {
    packed += (1 + 4 * quads(extents.k(i))) * 4 * quads(extents.n(i));
  }
  const std::int64_t of_x = extents.rows * 4 * quads(extents.in);
  return plan::has_address(target, static_cast<std::uint64_t>(std::max(packed, of_x)));
}

}  // namespace

bool has_mlp_rows(const plan::Lowering& out, const MlpForm& form, const MlpExtents& extents) {
  const plan::Target& target = out.target();
  return target.cpu && target.uniform_loads && extents.width <= most_width &&
         activation_constants(form.activation.formulas.result, 1) && rounds_of(extents) <= target.max_rounds &&
         has_addresses(target, extents);
}

void lower_mlp_rows(plan::Lowering& out, const MlpForm& form, std::span<const plan::TensorId> inputs,
                    plan::TensorId y) {
  struct Push {
    std::uint32_t rows, in_quads, out_columns, out_quads;
  };
  std::vector<TensorType> types;
  for (const plan::TensorId input : inputs) types.push_back(out.type(input));
  const MlpExtents extents(form, types);
  const plan::TensorId x = in_f32(out, inputs[0]);
  std::vector<PackedLayer> layers;
  for (const MlpLayer<plan::TensorId>& layer : form.layers(inputs)) {
    const auto i = static_cast<std::int64_t>(layers.size());
    layers.push_back({layer, quads(extents.n(i)), 4 * quads(extents.k(i)), quads(extents.n(i))});
  }
  const plan::TensorId packed = lower_pack(out, layers, false, PackedAs::wide);
  index32(out, 2 * plan::layout(out.type(x).shape).quads());
  index32(out, 2 * plan::layout(out.type(y).shape).quads());
  std::vector<std::uint32_t> constants{local_size};
  const std::vector<std::uint32_t> steps = activation_constants(form.activation.formulas.result, 1).value();
  constants.insert(constants.end(), steps.begin(), steps.end());
  constants.push_back(index32(out, quads(extents.width)));
  constants.push_back(index32(out, extents.hidden));
  constants.push_back(index32(out, extents.width));
  plan::Expression expression = result_expression(out, y, 2, 3);
  expression.noise = false;
  expression.rows_known = true;
  const Push push{index32(out, extents.rows), index32(out, quads(extents.in)), index32(out, extents.out),
                  index32(out, quads(extents.out))};
  out.dispatch({.label = {},
                .shader = fmt::format("mlp_rows.{}", graph::info(out.type(y).dtype).words),
                .constants = std::move(constants),
                .push = plan::push_bytes(push),
                .operands = {{x, Access::read, false, true}, {packed, Access::read, false, true}, {y, Access::write}},
                .groups = plan::groups_for(out.target(), extents.rows, local_size),
                .rounds = rounds_of(extents),
                .expression = std::move(expression),
                .flops = extents.flops()});
}

}  // namespace halfstep::ops
