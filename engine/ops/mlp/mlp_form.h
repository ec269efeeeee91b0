#pragma once

#include <halfstep/ops.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "graph/ir.h"
#include "ops/elementwise/unary.h"

/// Networks of dense layers as one operator: what they consist of, and how they are computed layer by layer.
namespace halfstep::ops {

/// The most hidden layers that are computed as one operator, and the widest.
inline constexpr std::int64_t most_mlp_width = 128;
inline constexpr std::size_t most_mlp_hidden = 8;

/// What a network has after each layer but the last: an elementwise operator.
struct MlpActivation {
  std::shared_ptr<const graph::Operator> op;  ///< null for none
  UnaryFormulas formulas;
};

/// The parameters of a layer.
template <typename T>
struct MlpLayer {
  T weight;
  std::optional<T> bias{};
};

/// Which gradients of a layer are computed.
struct MlpNeeds {
  bool x = false, weight = false, bias = false;
};

/// A network's inputs are x, then the weight and the bias, if it has one, of each layer.
struct MlpForm {
  MlpActivation activation;
  std::vector<bool> biases;  ///< of each layer

  std::size_t hidden() const { return biases.size() - 1; }
  /// The number of inputs.
  std::size_t count() const;
  /// Whether the activation's gradient needs its inputs, which are then kept beside the results.
  bool keeps_inputs() const { return activation.formulas.from == GradientOf::input; }
  graph::Attributes attributes() const;

  template <typename T>
  std::vector<MlpLayer<T>> layers(std::span<const T> inputs) const {
    std::vector<MlpLayer<T>> all;
    std::size_t next = 1;
    for (const bool has_bias : biases) {
      all.push_back({inputs[next++]});
      if (has_bias) all.back().bias = inputs[next++];
    }
    return all;
  }
  /// Of each layer, which of its parameters are among the `wanted` inputs.
  std::vector<MlpNeeds> needs(const std::vector<bool>& wanted) const;
};

/// The sizes of a network.
struct MlpExtents {
  std::int64_t rows = 0, in = 0, width = 0, out = 0, hidden = 0;

  /// Of the inputs' types.
  MlpExtents(const MlpForm& form, std::span<const TensorType> inputs);
  /// Of a layer, 0 to `hidden`.
  std::int64_t k(std::int64_t layer) const { return layer == 0 ? in : width; }
  std::int64_t n(std::int64_t layer) const { return layer == hidden ? out : width; }
  /// Of the products of all layers, forward.
  double flops() const;
};

/// Quads of a row of `columns`.
constexpr std::int64_t quads(std::int64_t columns) {
  return (columns + 3) / 4;
}

/// An f32 input of a graph that is only made to find operators.
Tensor stand_in(graph::Ir& ir, const Shape& shape);

/// The types of what the trained operator keeps: the results of hidden layers, and what came before their activations
/// if the form keeps that.
std::vector<TensorType> kept_mlp_types(const MlpForm& form, std::span<const TensorType> inputs);

/// y and what is kept: layer by layer.
std::vector<Tensor> composed_mlp(const MlpForm& form, std::span<const Tensor> inputs);

/// The gradients for a layer's input x, weight and bias, those of `needed` {x, weight, bias}, of the gradient dy of its
/// result.
graph::Gradients mlp_layer_gradients(Tensor x, const MlpLayer<Tensor>& layer, Tensor dy, const MlpNeeds& needed);

/// The gradients for those of a network's inputs that are `wanted`, in their order, of the inputs, what is kept of
/// hidden layers, and dy: layer by layer, down to the last one that has a part in any of them.
std::vector<Tensor> composed_mlp_gradients(const MlpForm& form, const std::vector<bool>& wanted,
                                           std::span<const Tensor> inputs);

/// The operator that is trained: what composed_mlp returns.
std::vector<Tensor> apply_mlp(const MlpForm& form, std::span<const Tensor> inputs);
/// The one that predicts: y.
Tensor predict_mlp(const MlpForm& form, std::span<const Tensor> inputs);
/// The one of the gradients: what composed_mlp_gradients returns.
std::vector<Tensor> apply_mlp_gradient(const MlpForm& form, const std::vector<bool>& wanted,
                                       std::span<const Tensor> inputs);

}  // namespace halfstep::ops
