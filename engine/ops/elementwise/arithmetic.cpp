#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/apply.h"
#include "ops/elementwise/elementwise.h"
#include "ops/expect.h"
#include "ops/shape/broadcast.h"

namespace halfstep {
namespace {

using Numbers = std::span<const ops::Number>;

class Add final : public ops::Elementwise {
 public:
  Add() : Elementwise("add", [](Numbers x) { return x[0] + x[1]; }) {}
  graph::Numerics numerics() const override { return graph::Numerics::pair; }

  // da = dy, db = dy, each summed to its operand's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (call.needed[i]) gradients[i] = ops::sum_to_shape(*call.cotangents[0], call.inputs[i].shape());
    }
    return gradients;
  }
};

class Sub final : public ops::Elementwise {
 public:
  Sub() : Elementwise("sub", [](Numbers x) { return x[0] - x[1]; }) {}
  graph::Numerics numerics() const override { return graph::Numerics::pair; }

  // da = dy, db = -dy, each summed to its operand's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    const Tensor dy = *call.cotangents[0];
    if (call.needed[0]) gradients[0] = ops::sum_to_shape(dy, call.inputs[0].shape());
    if (call.needed[1]) gradients[1] = scale(ops::sum_to_shape(dy, call.inputs[1].shape()), -1);
    return gradients;
  }
};

class Mul final : public ops::Elementwise {
 public:
  Mul() : Elementwise("mul", [](Numbers x) { return x[0] * x[1]; }) {}
  graph::Numerics numerics() const override { return graph::Numerics::pair; }

  // da = dy b, db = dy a, each summed to its operand's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    for (std::size_t i = 0; i < 2; ++i) {
      if (!call.needed[i]) continue;
      gradients[i] = ops::sum_to_shape(mul(*call.cotangents[0], call.inputs[1 - i]), call.inputs[i].shape());
    }
    return gradients;
  }
};

class Div final : public ops::Elementwise {
 public:
  Div() : Elementwise("div", [](Numbers x) { return x[0] / x[1]; }) {}
  graph::Numerics numerics() const override { return graph::Numerics::pair; }
  bool divides() const override { return true; }

  // da = dy / b, db = -dy y / b, each summed to its operand's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    const Tensor quotient = div(*call.cotangents[0], call.inputs[1]);
    if (call.needed[0]) gradients[0] = ops::sum_to_shape(quotient, call.inputs[0].shape());
    if (call.needed[1]) {
      gradients[1] = scale(ops::sum_to_shape(mul(quotient, call.outputs[0]), call.inputs[1].shape()), -1);
    }
    return gradients;
  }
};

class Scale final : public ops::Elementwise {
 public:
  explicit Scale(float factor)
      : Elementwise("scale", [factor](Numbers x) { return x[0] * factor; }, {{"factor", factor}}), factor_(factor) {}

  // dx = factor dy
  graph::Gradients vjp(const graph::Vjp& call) const override { return {scale(*call.cotangents[0], factor_)}; }

 private:
  float factor_;
};

class Offset final : public ops::Elementwise {
 public:
  explicit Offset(float amount)
      : Elementwise("offset", [amount](Numbers x) { return x[0] + amount; }, {{"amount", amount}}) {}

  // dx = dy
  graph::Gradients vjp(const graph::Vjp& call) const override { return {*call.cotangents[0]}; }
};

/// x {..., c} plus b {c}.
class Bias final : public ops::Elementwise {
 public:
  Bias() : Elementwise("bias", [](Numbers x) { return x[0] + x[1]; }) {}

  // A bias follows a product and is on the same list.
  graph::Numerics numerics() const override { return graph::Numerics::product; }

  std::vector<TensorType> infer(std::span<const TensorType> inputs) const override {
    ops::expect_count(name(), inputs, 2);
    const Shape& x = inputs[0].shape;
    if (x.empty() || inputs[1].shape != Shape{x.back()}) {
      fail(name(),
           fmt::format("expected x {{..., c}} and b {{c}}, got {} and {}", to_string(inputs[0]), to_string(inputs[1])));
    }
    return Elementwise::infer(inputs);
  }

  // dx = dy; db = dy summed over all axes but the last
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    const Tensor dy = *call.cotangents[0];
    if (call.needed[0]) gradients[0] = dy;
    if (call.needed[1]) gradients[1] = ops::sum_to_shape(dy, call.inputs[1].shape());
    return gradients;
  }
};

}  // namespace

Tensor add(Tensor a, Tensor b) {
  return ops::apply<Add>({a, b});
}

Tensor sub(Tensor a, Tensor b) {
  return ops::apply<Sub>({a, b});
}

Tensor mul(Tensor a, Tensor b) {
  return ops::apply<Mul>({a, b});
}

Tensor div(Tensor a, Tensor b) {
  return ops::apply<Div>({a, b});
}

Tensor scale(Tensor x, float factor) {
  if (!std::isfinite(factor)) fail("scale", fmt::format("expected a finite factor, got {}", factor));
  return ops::apply<Scale>({x}, factor);
}

Tensor offset(Tensor x, float amount) {
  if (!std::isfinite(amount)) fail("offset", fmt::format("expected a finite amount, got {}", amount));
  return ops::apply<Offset>({x}, amount);
}

Tensor bias(Tensor x, Tensor b) {
  return ops::apply<Bias>({x, b});
}

}  // namespace halfstep
