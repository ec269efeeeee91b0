#include "ops/mlp/mlp_form.h"

#include <algorithm>

#include "plan/layout.h"

namespace halfstep::ops {
namespace {

/// The operator that `linear` applies.
std::shared_ptr<const graph::Operator> linear_operator() {
  const auto ir = std::make_shared<graph::Ir>();
  linear(stand_in(*ir, {1, 1}), stand_in(*ir, {1, 1}));
  return ir->nodes.back().op;
}

graph::Gradients vjp_of(const graph::Operator& op, std::span<const Tensor> inputs, Tensor result, Tensor cotangent,
                        const std::vector<bool>& needed) {
  const std::optional<Tensor> cotangents[] = {cotangent};
  return op.vjp({inputs, std::span(&result, 1), cotangents, needed});
}

/// The gradient before the activation of a hidden layer.
Tensor before_activation(const MlpForm& form, Tensor gradient, std::span<const Tensor> inputs, std::size_t layer) {
  if (!form.activation.op) return gradient;
  const Tensor y = inputs[form.count() + layer];
  const Tensor x = form.keeps_inputs() ? inputs[form.count() + form.hidden() + layer] : y;
  return *vjp_of(*form.activation.op, std::span(&x, 1), y, gradient, {true})[0];
}

}  // namespace

std::size_t MlpForm::count() const {
  return 1 + biases.size() + static_cast<std::size_t>(std::ranges::count(biases, true));
}

std::vector<MlpNeeds> MlpForm::needs(const std::vector<bool>& wanted) const {
  std::vector<MlpNeeds> all;
  std::size_t next = 1;
  for (const bool has_bias : biases) {
    all.push_back({.weight = wanted[next++]});
    if (has_bias) all.back().bias = wanted[next++];
  }
  return all;
}

graph::Attributes MlpForm::attributes() const {
  graph::Attributes all{{"activation", activation.op ? activation.op->name() : std::string("none")}};
  if (activation.op) {
    for (const graph::Attribute& attribute : activation.op->attributes()) all.push_back(attribute);
  }
  all.push_back({"biases", std::vector<std::int64_t>(biases.begin(), biases.end())});
  return all;
}

MlpExtents::MlpExtents(const MlpForm& form, std::span<const TensorType> inputs) {
  const plan::Layout x = plan::layout(inputs[0].shape);
  const std::vector<MlpLayer<TensorType>> layers = form.layers(inputs);
  rows = x.rows;
  in = x.columns;
  width = layers.front().weight.shape[1];
  out = layers.back().weight.shape[1];
  hidden = static_cast<std::int64_t>(form.hidden());
}

double MlpExtents::flops() const {
  double products = 0;
  for (std::int64_t layer = 0; layer <= hidden; ++layer) {
    products += static_cast<double>(rows * k(layer)) * static_cast<double>(n(layer));
  }
  return 2 * products;
}

Tensor stand_in(graph::Ir& ir, const Shape& shape) {
  graph::Value value;
  value.type = {DType::f32, shape};
  value.origin = graph::Origin::input;
  return ir.tensor(ir.add_value(std::move(value)));
}

std::vector<TensorType> kept_mlp_types(const MlpForm& form, std::span<const TensorType> inputs) {
  TensorType kept = inputs[0];
  kept.shape.back() = inputs[1].shape[1];
  return std::vector((form.keeps_inputs() ? 2 : 1) * form.hidden(), kept);
}

std::vector<Tensor> composed_mlp(const MlpForm& form, std::span<const Tensor> inputs) {
  std::vector<Tensor> before;
  std::vector<Tensor> results;
  Tensor x = inputs[0];
  for (const MlpLayer<Tensor>& layer : form.layers(inputs)) {
    before.push_back(linear(x, layer.weight, layer.bias));
    x = before.back();
    if (results.size() < form.hidden() && form.activation.op) {
      x = graph::apply_one(form.activation.op, std::span(&before.back(), 1));
    }
    results.push_back(x);
  }
  std::vector<Tensor> all{results.back()};
  all.insert(all.end(), results.begin(), results.end() - 1);
  if (form.keeps_inputs()) all.insert(all.end(), before.begin(), before.end() - 1);
  return all;
}

graph::Gradients mlp_layer_gradients(Tensor x, const MlpLayer<Tensor>& layer, Tensor dy, const MlpNeeds& needed) {
  std::vector<Tensor> own{x, layer.weight};
  if (layer.bias) own.push_back(*layer.bias);
  std::vector<bool> wanted{needed.x, needed.weight, needed.bias};
  wanted.resize(own.size());
  return vjp_of(*linear_operator(), own, dy, dy, wanted);
}

std::vector<Tensor> composed_mlp_gradients(const MlpForm& form, const std::vector<bool>& wanted,
                                           std::span<const Tensor> inputs) {
  const std::vector<MlpLayer<Tensor>> layers = form.layers(inputs);
  std::vector<MlpNeeds> needs = form.needs(wanted);
  const auto is_trained = [](const MlpNeeds& needed) { return needed.weight || needed.bias; };
  const auto last = wanted[0] ? 0 : static_cast<std::size_t>(std::ranges::find_if(needs, is_trained) - needs.begin());
  std::vector<Tensor> found;  // from the last input to the first
  Tensor gradient = inputs.back();
  for (std::size_t layer = layers.size(); layer-- > last;) {
    const Tensor x = layer > 0 ? inputs[form.count() + layer - 1] : inputs[0];
    needs[layer].x = layer > last || wanted[0];
    const graph::Gradients all = mlp_layer_gradients(x, layers[layer], gradient, needs[layer]);
    for (std::size_t i = all.size(); i-- > 1;) {
      if (all[i]) found.push_back(*all[i]);
    }
    if (!needs[layer].x) break;
    gradient = layer > 0 ? before_activation(form, *all[0], inputs, layer - 1) : *all[0];
  }
  if (wanted[0]) found.push_back(gradient);
  std::ranges::reverse(found);
  return found;
}

}  // namespace halfstep::ops
