#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "graph/ir.h"
#include "ops/expect.h"
#include "ops/mlp/mlp.h"

namespace halfstep::ops {
namespace {

/// Inputs are x, then the weight and the bias, if it has one, of each layer.
struct Form {
  MlpActivation activation;
  std::vector<bool> biases;

  std::size_t hidden() const { return biases.size() - 1; }
  /// The number of inputs.
  std::size_t count() const { return 1 + biases.size() + static_cast<std::size_t>(std::ranges::count(biases, true)); }
  /// Whether the activation's gradient needs its inputs as well.
  bool keeps_inputs() const { return activation.formulas.from == GradientOf::input; }

  graph::Attributes attributes() const {
    graph::Attributes all{{"activation", activation.op ? activation.op->name() : std::string("none")}};
    if (activation.op) {
      for (const graph::Attribute& attribute : activation.op->attributes()) all.push_back(attribute);
    }
    all.push_back({"biases", std::vector<std::int64_t>(biases.begin(), biases.end())});
    return all;
  }
  Tensor activated(Tensor x) const { return activation.op ? graph::apply_one(activation.op, std::span(&x, 1)) : x; }
};

/// A layer's own inputs, in the order of the operator's.
struct Parameters {
  Tensor weight;
  std::optional<Tensor> bias;
};

std::vector<Parameters> parameters_of(const Form& form, std::span<const Tensor> inputs) {
  std::vector<Parameters> all;
  std::size_t next = 1;
  for (const bool has_bias : form.biases) {
    all.push_back({inputs[next++], {}});
    if (has_bias) all.back().bias = inputs[next++];
  }
  return all;
}

/// y, the results of hidden layers, and those before the activation if its gradient needs them: layer by layer.
std::vector<Tensor> composed(const Form& form, std::span<const Tensor> inputs) {
  std::vector<Tensor> before;
  std::vector<Tensor> results;
  Tensor x = inputs[0];
  for (const Parameters& layer : parameters_of(form, inputs)) {
    before.push_back(linear(x, layer.weight, layer.bias));
    x = results.size() < form.hidden() ? form.activated(before.back()) : before.back();
    results.push_back(x);
  }
  std::vector<Tensor> all{results.back()};
  all.insert(all.end(), results.begin(), results.end() - 1);
  if (form.keeps_inputs()) all.insert(all.end(), before.begin(), before.end() - 1);
  return all;
}

/// An input of a graph that is only made to find operators.
Tensor input_of(graph::Ir& ir, const Shape& shape) {
  graph::Value value;
  value.type = {DType::f32, shape};
  value.origin = graph::Origin::input;
  return ir.tensor(ir.add_value(std::move(value)));
}

/// The operator that `linear` applies.
std::shared_ptr<const graph::Operator> linear_operator() {
  const auto ir = std::make_shared<graph::Ir>();
  linear(input_of(*ir, {1, 1}), input_of(*ir, {1, 1}));
  return ir->nodes.back().op;
}

/// dx, where it is wanted, and the gradients for all weights and biases, from the inputs of Mlp, what its outputs keep
/// of hidden layers, and dy: as those of the layers one by one.
class MlpGradient final : public graph::Operator {
 public:
  MlpGradient(Form form, bool dx_wanted) : form_(std::move(form)), dx_wanted_(dx_wanted) {}

  std::string name() const override { return "fused_mlp_gradient"; }
  graph::Attributes attributes() const override {
    graph::Attributes all = form_.attributes();
    all.push_back({"dx", dx_wanted_});
    return all;
  }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    const std::span<const TensorType> own = inputs.first(form_.count()).subspan(dx_wanted_ ? 0 : 1);
    return {own.begin(), own.end()};
  }

  void lower(plan::Lowering& out) const override {
    out.lower_as([&](std::span<const Tensor> x) { return gradients(x); });
  }

 private:
  std::vector<Tensor> gradients(std::span<const Tensor> inputs) const {
    const std::shared_ptr<const graph::Operator> product = linear_operator();
    const std::vector<Parameters> layers = parameters_of(form_, inputs);
    const std::span<const Tensor> results = inputs.subspan(form_.count(), form_.hidden());
    std::vector<Tensor> found;  // from the last to the first
    Tensor gradient = inputs.back();
    for (std::size_t layer = layers.size(); layer-- > 0;) {
      std::vector<Tensor> own{layer > 0 ? results[layer - 1] : inputs[0], layers[layer].weight};
      if (layers[layer].bias) own.push_back(*layers[layer].bias);
      std::vector<bool> needed(own.size(), true);
      needed[0] = layer > 0 || dx_wanted_;
      const graph::Gradients all = vjp_of(*product, own, gradient, gradient, needed);
      for (std::size_t i = own.size(); i-- > 1;) found.push_back(*all[i]);
      if (all[0]) gradient = *all[0];
      if (layer > 0) gradient = before_activation(gradient, inputs, layer - 1);
    }
    if (dx_wanted_) found.push_back(gradient);
    std::ranges::reverse(found);
    return found;
  }

  Tensor before_activation(Tensor gradient, std::span<const Tensor> inputs, std::size_t layer) const {
    if (!form_.activation.op) return gradient;
    const Tensor y = inputs[form_.count() + layer];
    const Tensor x = form_.keeps_inputs() ? inputs[form_.count() + form_.hidden() + layer] : y;
    const Tensor own[] = {x};
    return *vjp_of(*form_.activation.op, own, y, gradient, {true})[0];
  }

  static graph::Gradients vjp_of(const graph::Operator& op, std::span<const Tensor> inputs, Tensor result,
                                 Tensor cotangent, const std::vector<bool>& needed) {
    const std::optional<Tensor> cotangents[] = {cotangent};
    return op.vjp({inputs, std::span(&result, 1), cotangents, needed});
  }

  Form form_;
  bool dx_wanted_;
};

/// y alone, as in prediction and evaluation: by one kernel where the device has one.
class MlpInference final : public graph::Operator {
 public:
  explicit MlpInference(Form form) : form_(std::move(form)) {}

  std::string name() const override { return "fused_mlp_inference"; }
  graph::Attributes attributes() const override { return form_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    TensorType type = inputs[0];
    for (const TensorType& input : inputs) expect_same_float(name(), type, input);
    type.shape.back() = inputs[form_.count() - (form_.biases.back() ? 2 : 1)].shape[1];
    return {type};
  }

  void lower(plan::Lowering& out) const override {
    MlpTensors tensors{.x = out.input(0)};
    std::size_t next = 1;
    for (const bool has_bias : form_.biases) {
      tensors.weights.push_back(out.input(next++));
      tensors.biases.emplace_back();
      if (has_bias) tensors.biases.back() = out.input(next++);
    }
    tensors.y = out.output(0);
    if (has_mlp_kernel(out, form_.activation, tensors)) return lower_mlp(out, form_.activation, tensors);
    out.lower_as([&](std::span<const Tensor> x) { return std::vector{composed(form_, x).front()}; });
  }

 private:
  Form form_;
};

/// y, and what the gradients need of hidden layers, as `composed` returns it.
class Mlp final : public graph::Operator {
 public:
  explicit Mlp(Form form) : form_(std::move(form)) {}

  std::string name() const override { return "fused_mlp"; }
  graph::Attributes attributes() const override { return form_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    std::vector<TensorType> types = MlpInference(form_).infer(inputs);
    TensorType kept = inputs[0];
    kept.shape.back() = inputs[1].shape[1];
    types.insert(types.end(), (form_.keeps_inputs() ? 2 : 1) * form_.hidden(), kept);
    return types;
  }

  graph::Gradients vjp(const graph::Vjp& call) const override {
    std::vector<Tensor> inputs(call.inputs.begin(), call.inputs.end());
    inputs.insert(inputs.end(), call.outputs.begin() + 1, call.outputs.end());
    inputs.push_back(*call.cotangents[0]);
    const bool dx_wanted = call.needed[0];
    const std::vector<Tensor> found = graph::apply(std::make_shared<MlpGradient>(form_, dx_wanted), inputs);
    graph::Gradients gradients(call.inputs.size());
    for (std::size_t i = 0; i < found.size(); ++i) gradients[i + (dx_wanted ? 0 : 1)] = found[i];
    return gradients;
  }

  std::optional<Tensor> inference(std::span<const Tensor> inputs) const override {
    return graph::apply_one(std::make_shared<MlpInference>(form_), inputs);
  }

  void lower(plan::Lowering& out) const override {
    out.lower_as([&](std::span<const Tensor> x) { return composed(form_, x); });
  }

 private:
  Form form_;
};

/// What `apply` computes, if it is one elementwise operator of its argument.
std::optional<MlpActivation> activation_of(const std::function<Tensor(Tensor)>& apply) {
  if (!apply) {
    const Formula unchanged = [](Numbers v) { return v[0]; };
    return MlpActivation{nullptr, {unchanged, unchanged, GradientOf::result}};
  }
  const auto ir = std::make_shared<graph::Ir>();
  const Tensor y = apply(input_of(*ir, {4}));
  if (ir->nodes.size() != 1 || &graph::ir_of(y) != ir.get() || y.id() != ir->nodes[0].outputs[0]) return {};
  const std::optional<UnaryFormulas> formulas = unary_formulas(*ir->nodes[0].op);
  if (!formulas) return {};
  return MlpActivation{ir->nodes[0].op, *formulas};
}

void check_layers(Tensor x, const std::vector<DenseLayer>& layers) {
  constexpr const char* op = "fused_mlp";
  if (layers.empty()) fail(op, "expected one layer or more, got none");
  if (x.rank() == 0) fail(op, fmt::format("expected x {{..., in}}, got {}", to_string(x.type())));
  std::int64_t columns = x.dim(-1);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TensorType& weight = layers[i].weight.type();
    expect_rank(op, fmt::format("weight {}", i), weight, 2, "{in, out}");
    if (weight.shape[0] != columns) {
      fail(op, fmt::format("expected weight {} {{{}, out}}, got {}", i, columns, to_string(weight)));
    }
    columns = weight.shape[1];
    if (layers[i].bias && layers[i].bias->shape() != Shape{columns}) {
      fail(op, fmt::format("expected bias {} {{{}}}, got {}", i, columns, to_string(layers[i].bias->type())));
    }
  }
}

/// Whether there are hidden layers, as many and as wide as one operator takes, and all equally wide.
bool fits(const std::vector<DenseLayer>& layers) {
  const std::size_t hidden = layers.size() - 1;
  if (hidden == 0 || hidden > most_mlp_hidden) return false;
  const std::int64_t width = layers[0].weight.dim(1);
  return width <= most_mlp_width && std::all_of(layers.begin(), layers.end() - 1,
                                                [&](const DenseLayer& layer) { return layer.weight.dim(1) == width; });
}

}  // namespace
}  // namespace halfstep::ops

namespace halfstep {

Tensor fused_mlp(Tensor x, const std::vector<DenseLayer>& layers, const FusedMlpOptions& options) {
  ops::check_layers(x, layers);
  const std::optional<ops::MlpActivation> activation = ops::activation_of(options.activation);
  Tensor y = x;
  if (activation && ops::fits(layers)) {
    ops::Form form{*activation, {}};
    std::vector<Tensor> inputs{x};
    for (const DenseLayer& layer : layers) {
      inputs.push_back(layer.weight);
      form.biases.push_back(layer.bias.has_value());
      if (layer.bias) inputs.push_back(*layer.bias);
    }
    y = graph::apply(std::make_shared<ops::Mlp>(std::move(form)), inputs).front();
  } else {
    for (const DenseLayer& layer : layers) {
      y = linear(y, layer.weight, layer.bias);
      if (&layer != &layers.back() && options.activation) y = options.activation(y);
    }
  }
  return options.output_activation ? options.output_activation(y) : y;
}

}  // namespace halfstep
