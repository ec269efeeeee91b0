#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "graph/ir.h"
#include "ops/expect.h"
#include "ops/mlp/mlp_choice.h"
#include "ops/mlp/mlp_form.h"
#include "ops/mlp/mlp_rows.h"
#include "ops/mlp/mlp_tile.h"

namespace halfstep::ops {
namespace {

/// The first inputs of an operator: those of a network.
std::vector<plan::TensorId> inputs_of(const plan::Lowering& out, const MlpForm& form) {
  std::vector<plan::TensorId> inputs;
  for (std::size_t i = 0; i < form.count(); ++i) inputs.push_back(out.input(i));
  return inputs;
}

/// y from x.
TensorType result_type(const std::string& name, const MlpForm& form, std::span<const TensorType> inputs) {
  TensorType type = inputs[0];
  for (const TensorType& input : inputs) expect_same_float(name, type, input);
  type.shape.back() = form.layers(inputs).back().weight.shape[1];
  return type;
}

/// The gradients before the activations of hidden layers, and dx if it is wanted, by one kernel: from all weights, what
/// the activations' gradients depend on in each hidden layer, and dy.
class MlpLayerGradients final : public graph::Operator {
 public:
  MlpLayerGradients(MlpForm form, MlpTile tile, bool dx_wanted)
      : form_(std::move(form)), tile_(std::move(tile)), dx_wanted_(dx_wanted) {}

  std::string name() const override { return "fused_mlp_layer_gradients"; }
  graph::Attributes attributes() const override {
    graph::Attributes all = form_.attributes();
    all.push_back({"dx", dx_wanted_});
    return all;
  }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    const std::span<const TensorType> kept = inputs.subspan(form_.hidden() + 1, form_.hidden());
    std::vector<TensorType> types(kept.begin(), kept.end());
    if (!dx_wanted_) return types;
    types.push_back(kept.front());
    types.back().shape.back() = inputs[0].shape[0];
    return types;
  }

  void lower(plan::Lowering& out) const override {
    const std::size_t hidden = form_.hidden();
    MlpBackward operands;
    for (std::size_t i = 0; i <= hidden; ++i) operands.weights.push_back(out.input(i));
    for (std::size_t i = 0; i < hidden; ++i) operands.kept.push_back(out.input(hidden + 1 + i));
    for (std::size_t i = 0; i < hidden; ++i) operands.gradients.push_back(out.output(i));
    operands.dy = out.input(2 * hidden + 1);
    if (dx_wanted_) operands.dx = out.output(hidden);
    lower_mlp_backward(out, form_, tile_, operands);
  }

 private:
  MlpForm form_;
  MlpTile tile_;
  bool dx_wanted_;
};

/// The gradients for those inputs of Mlp that are wanted, from them, what its outputs keep of hidden layers, and dy.
class MlpGradient final : public graph::Operator {
 public:
  MlpGradient(MlpForm form, std::vector<bool> wanted) : form_(std::move(form)), wanted_(std::move(wanted)) {}

  std::string name() const override { return "fused_mlp_gradient"; }
  graph::Attributes attributes() const override {
    graph::Attributes all = form_.attributes();
    all.push_back({"wanted", std::vector<std::int64_t>(wanted_.begin(), wanted_.end())});
    return all;
  }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    std::vector<TensorType> types;
    for (std::size_t i = 0; i < form_.count(); ++i) {
      if (wanted_[i]) types.push_back(inputs[i]);
    }
    return types;
  }

  void lower(plan::Lowering& out) const override {
    const MlpKernel kernel = chosen_mlp_kernel(out, MlpPass::backward, form_);
    out.lower_as([&](std::span<const Tensor> x) {
      return kernel.tile ? gradients(*kernel.tile, x) : composed_mlp_gradients(form_, wanted_, x);
    });
  }

 private:
  /// Of all layers by one kernel, and from them those of the parameters by a product for each layer.
  std::vector<Tensor> gradients(const MlpTile& tile, std::span<const Tensor> inputs) const {
    const std::vector<MlpLayer<Tensor>> layers = form_.layers(inputs);
    const std::size_t hidden = form_.hidden();
    const std::span<const Tensor> results = inputs.subspan(form_.count(), hidden);
    const std::span<const Tensor> kept =
        form_.keeps_inputs() ? inputs.subspan(form_.count() + hidden, hidden) : results;
    std::vector<Tensor> own;
    for (const MlpLayer<Tensor>& layer : layers) own.push_back(layer.weight);
    own.insert(own.end(), kept.begin(), kept.end());
    own.push_back(inputs.back());
    std::vector<Tensor> before = graph::apply(std::make_shared<MlpLayerGradients>(form_, tile, wanted_[0]), own);
    std::vector<Tensor> found;
    if (wanted_[0]) {
      found.push_back(before.back());
      before.pop_back();
    }
    before.push_back(inputs.back());
    const std::vector<MlpNeeds> needs = form_.needs(wanted_);
    for (std::size_t i = 0; i <= hidden; ++i) {
      const Tensor x = i > 0 ? results[i - 1] : inputs[0];
      for (const std::optional<Tensor>& gradient : mlp_layer_gradients(x, layers[i], before[i], needs[i])) {
        if (gradient) found.push_back(*gradient);
      }
    }
    return found;
  }

  MlpForm form_;
  std::vector<bool> wanted_;
};

/// y alone, as in prediction and evaluation.
class MlpInference final : public graph::Operator {
 public:
  explicit MlpInference(MlpForm form) : form_(std::move(form)) {}

  std::string name() const override { return "fused_mlp_inference"; }
  graph::Attributes attributes() const override { return form_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    return {result_type(name(), form_, inputs)};
  }

  void lower(plan::Lowering& out) const override {
    const MlpKernel kernel = chosen_mlp_kernel(out, MlpPass::prediction, form_);
    const std::vector<plan::TensorId> inputs = inputs_of(out, form_);
    if (kernel.tile) {
      const MlpForward operands{inputs[0], form_.layers(std::span(std::as_const(inputs))), out.output(0), {}};
      lower_mlp_forward(out, form_, *kernel.tile, operands);
    } else if (kernel.name == mlp_rows_name) {
      lower_mlp_rows(out, form_, inputs, out.output(0));
    } else {
      out.lower_as([&](std::span<const Tensor> x) { return std::vector{composed_mlp(form_, x).front()}; });
    }
  }

 private:
  MlpForm form_;
};

/// y, and what the gradients need of hidden layers, as `composed_mlp` returns it.
class Mlp final : public graph::Operator {
 public:
  explicit Mlp(MlpForm form) : form_(std::move(form)) {}

  std::string name() const override { return "fused_mlp"; }
  graph::Attributes attributes() const override { return form_.attributes(); }
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    std::vector<TensorType> types{result_type(name(), form_, inputs)};
    const std::vector<TensorType> kept = kept_mlp_types(form_, inputs);
    types.insert(types.end(), kept.begin(), kept.end());
    return types;
  }

  graph::Gradients vjp(const graph::Vjp& call) const override {
    std::vector<Tensor> inputs(call.inputs.begin(), call.inputs.end());
    inputs.insert(inputs.end(), call.outputs.begin() + 1, call.outputs.end());
    inputs.push_back(*call.cotangents[0]);
    const std::vector<Tensor> found = apply_mlp_gradient(form_, call.needed, inputs);
    graph::Gradients gradients(call.inputs.size());
    auto next = found.begin();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (call.needed[i]) gradients[i] = *next++;
    }
    return gradients;
  }

  std::optional<Tensor> inference(std::span<const Tensor> inputs) const override { return predict_mlp(form_, inputs); }

  void lower(plan::Lowering& out) const override {
    const MlpKernel kernel = chosen_mlp_kernel(out, MlpPass::forward, form_);
    if (!kernel.tile) return out.lower_as([&](std::span<const Tensor> x) { return composed_mlp(form_, x); });
    const std::vector<plan::TensorId> inputs = inputs_of(out, form_);
    MlpForward operands{inputs[0], form_.layers(std::span(std::as_const(inputs))), out.output(0), {}};
    for (std::size_t i = 1; i < out.output_count(); ++i) operands.kept.push_back(out.output(i));
    lower_mlp_forward(out, form_, *kernel.tile, operands);
  }

 private:
  MlpForm form_;
};

Number first_of(Numbers v) {
  return v[0];
}

/// `apply` of a tensor in a graph of its own; undefined where it takes other tensors, or another shape.
Tensor tried(const std::function<Tensor(Tensor)>& apply, graph::Ir& ir) {
  try {
    return apply(stand_in(ir, {4}));
  } catch (const Error&) {
    return {};
  }
}

/// What `apply` computes, if it is one elementwise operator of its argument.
std::optional<MlpActivation> activation_of(const std::function<Tensor(Tensor)>& apply) {
  if (!apply) {
    return MlpActivation{nullptr, {first_of, first_of, GradientOf::result}};
  }
  const auto ir = std::make_shared<graph::Ir>();
  const Tensor y = tried(apply, *ir);
  if (!y.defined() || ir->nodes.size() != 1 || &graph::ir_of(y) != ir.get() || y.id() != ir->nodes[0].outputs[0])
    return {};
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

std::vector<Tensor> apply_mlp(const MlpForm& form, std::span<const Tensor> inputs) {
  return graph::apply(std::make_shared<Mlp>(form), inputs);
}

std::vector<Tensor> apply_mlp_gradient(const MlpForm& form, const std::vector<bool>& wanted,
                                       std::span<const Tensor> inputs) {
  return graph::apply(std::make_shared<MlpGradient>(form, wanted), inputs);
}

Tensor predict_mlp(const MlpForm& form, std::span<const Tensor> inputs) {
  return graph::apply_one(std::make_shared<MlpInference>(form), inputs);
}

}  // namespace halfstep::ops

namespace halfstep {

Tensor fused_mlp(Tensor x, const std::vector<DenseLayer>& layers, const FusedMlpOptions& options) {
  ops::check_layers(x, layers);
  const std::optional<ops::MlpActivation> activation = ops::activation_of(options.activation);
  Tensor y = x;
  if (activation && ops::fits(layers)) {
    ops::MlpForm form{*activation, {}};
    std::vector<Tensor> inputs{x};
    for (const DenseLayer& layer : layers) {
      inputs.push_back(layer.weight);
      form.biases.push_back(layer.bias.has_value());
      if (layer.bias) inputs.push_back(*layer.bias);
    }
    y = ops::apply_mlp(form, inputs).front();
  } else {
    for (const DenseLayer& layer : layers) {
      y = linear(y, layer.weight, layer.bias);
      if (&layer != &layers.back() && options.activation) y = options.activation(y);
    }
  }
  return options.output_activation ? options.output_activation(y) : y;
}

}  // namespace halfstep
