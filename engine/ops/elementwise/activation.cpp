#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <utility>

#include "ops/apply.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expect.h"

namespace halfstep {
namespace {

using Numbers = std::span<const ops::Number>;

/// dx of an activation, from dy and the activation's result y or its input x.
class ActivationGradient final : public ops::Elementwise {
 public:
  using Elementwise::Elementwise;

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_shape(name(), inputs[0], inputs[1]);
    return Elementwise::infer(inputs);
  }
};

/// The tensor that an activation's gradient needs besides dy.
enum class GradientOf : std::uint8_t {
  result,  ///< which the next operator keeps anyway
  input,   ///< if one result has two possible inputs
};

class Activation final : public ops::Elementwise {
 public:
  /// y of x, and dx of dy and y or x.
  Activation(std::string name, const ops::Formula& result, ops::Formula gradient, GradientOf from = GradientOf::result,
             graph::Attributes attributes = {})
      : Elementwise(std::move(name), result, std::move(attributes)), gradient_(std::move(gradient)), from_(from) {}

  graph::Gradients vjp(const graph::Vjp& call) const override {
    const Tensor from = from_ == GradientOf::result ? call.outputs[0] : call.inputs[0];
    return {ops::apply<ActivationGradient>({*call.cotangents[0], from}, name() + "_gradient", gradient_, attributes())};
  }

 private:
  ops::Formula gradient_;
  GradientOf from_;
};

}  // namespace

Tensor relu(Tensor x) {
  return ops::apply<Activation>(
      {x}, "relu", [](Numbers v) { return relu(v[0]); }, [](Numbers v) { return where_positive(v[0], v[1]); });
}

Tensor relu6(Tensor x) {
  return ops::apply<Activation>(
      {x}, "relu6", [](Numbers v) { return at_most(relu(v[0]), 6); },
      [](Numbers v) { return where_positive(where_positive(v[0], v[1]), 6.0F - v[1]); });
}

// The result has the sign of the input; for a negative input it may also be 0.
Tensor leaky_relu(Tensor x, float slope) {
  if (!std::isfinite(slope) || slope < 0) {
    fail("leaky_relu", fmt::format("expected a slope of 0 or more, got {}", slope));
  }
  return ops::apply<Activation>(
      {x}, "leaky_relu", [slope](Numbers v) { return where_positive_or_scaled(v[0], v[0], slope); },
      [slope](Numbers v) { return where_positive_or_scaled(v[0], v[1], slope); }, GradientOf::result,
      graph::Attributes{{"slope", slope}});
}

Tensor sigmoid(Tensor x) {
  return ops::apply<Activation>(
      {x}, "sigmoid", [](Numbers v) { return sigmoid(v[0]); }, [](Numbers v) { return v[0] * v[1] * (1.0F - v[1]); });
}

Tensor tanh(Tensor x) {
  return ops::apply<Activation>(
      {x}, "tanh", [](Numbers v) { return tanh(v[0]); }, [](Numbers v) { return v[0] * (1.0F - v[1] * v[1]); });
}

Tensor silu(Tensor x) {
  const auto gradient = [](Numbers v) {
    const ops::Number s = sigmoid(v[1]);
    return v[0] * s * (v[1] * (1.0F - s) + 1.0F);
  };
  return ops::apply<Activation>(
      {x}, "silu", [](Numbers v) { return v[0] * sigmoid(v[0]); }, gradient, GradientOf::input);
}

Tensor hardswish(Tensor x) {
  return ops::apply<Activation>(
      {x}, "hardswish", [](Numbers v) { return v[0] * at_most(relu(v[0] * (1.0F / 6.0F) + 0.5F), 1); },
      [](Numbers v) { return v[0] * hardswish_slope(v[1]); }, GradientOf::input);
}

}  // namespace halfstep
