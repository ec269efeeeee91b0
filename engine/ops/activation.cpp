#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/pointwise.h"

namespace halfstep {
namespace {

/// dx of an activation, from dy and the activation's result y or its input x.
class ActivationGradient final : public ops::PointwisePair {
 public:
  using PointwisePair::PointwisePair;

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_shape(name(), inputs[0], inputs[1]);
    return PointwisePair::infer(inputs);
  }
};

/// An activation whose gradient follows from its result, which the next operator keeps anyway.
class Activation : public ops::Pointwise {
 public:
  using Pointwise::Pointwise;

  // relu: dx = dy where y > 0; sigmoid: dx = dy y (1 - y); tanh: dx = dy (1 - y^2)
  // relu6: dx = dy where 0 < y < 6; leaky_relu: dx = dy where y > 0, else slope dy
  graph::Gradients vjp(const graph::Vjp& call) const override { return gradient(call, call.outputs[0]); }

 protected:
  graph::Gradients gradient(const graph::Vjp& call, Tensor from) const {
    const std::string shader = name() + "_gradient";
    return {ops::apply<ActivationGradient>({*call.cotangents[0], from}, shader, shader, parameter())};
  }
};

/// An activation with two inputs for one result: its gradient needs the input.
class ActivationNotMonotone final : public Activation {
 public:
  using Activation::Activation;

  // silu: dx = dy s (1 + x (1 - s)) with s = sigmoid(x)
  // hardswish: dx = dy (0 below -3, 1 above 3, x / 3 + 1 / 2 between)
  graph::Gradients vjp(const graph::Vjp& call) const override { return gradient(call, call.inputs[0]); }
};

}  // namespace

Tensor relu(Tensor x) {
  return ops::apply<Activation>({x}, "relu");
}

Tensor relu6(Tensor x) {
  return ops::apply<Activation>({x}, "relu6");
}

Tensor leaky_relu(Tensor x, float slope) {
  if (!std::isfinite(slope) || slope < 0) {
    fail("leaky_relu", fmt::format("expected a slope of 0 or more, got {}", slope));
  }
  return ops::apply<Activation>({x}, "leaky_relu", ops::AtZero::zero, slope);
}

Tensor sigmoid(Tensor x) {
  return ops::apply<Activation>({x}, "sigmoid", ops::AtZero::other);
}

Tensor tanh(Tensor x) {
  return ops::apply<Activation>({x}, "tanh");
}

Tensor silu(Tensor x) {
  return ops::apply<ActivationNotMonotone>({x}, "silu");
}

Tensor hardswish(Tensor x) {
  return ops::apply<ActivationNotMonotone>({x}, "hardswish");
}

}  // namespace halfstep
