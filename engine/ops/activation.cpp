#include <halfstep/ops.h>

#include "ops/apply.h"
#include "ops/expect.h"
#include "ops/pointwise.h"

namespace halfstep {
namespace {

/// dx of an activation, from dy and the activation's result y.
class ActivationGradient final : public ops::PointwisePair {
 public:
  using PointwisePair::PointwisePair;

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    ops::expect_same_shape(name(), inputs[0], inputs[1]);
    return PointwisePair::infer(inputs);
  }
};

/// An activation whose gradient follows from its result.
class Activation final : public ops::Pointwise {
 public:
  using Pointwise::Pointwise;

  // relu: dx = dy where y > 0; sigmoid: dx = dy y (1 - y); tanh: dx = dy (1 - y^2)
  graph::Gradients vjp(const graph::Vjp& call) const override {
    return {ops::apply<ActivationGradient>({*call.cotangents[0], call.outputs[0]}, name() + "_gradient")};
  }
};

}  // namespace

Tensor relu(Tensor x) {
  return ops::apply<Activation>({x}, "relu");
}

Tensor sigmoid(Tensor x) {
  return ops::apply<Activation>({x}, "sigmoid", ops::AtZero::other);
}

Tensor tanh(Tensor x) {
  return ops::apply<Activation>({x}, "tanh");
}

}  // namespace halfstep
