#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/apply.h"
#include "ops/elementwise/unary.h"
#include "ops/shape/broadcast.h"

namespace halfstep {
namespace {

using ops::GradientOf;
using ops::Numbers;
using ops::unary;

/// a^b of two tensors.
class Pow final : public ops::Elementwise {
 public:
  Pow() : Elementwise("pow", [](Numbers x) { return pow(x[0], x[1]); }) {}
  graph::Numerics numerics() const override { return graph::Numerics::pair; }

  // da = dy b a^(b - 1), and 0 where b is 0; db = dy y log(a), and 0 where a is 0 and b is not negative; each summed to
  // its operand's shape
  graph::Gradients vjp(const graph::Vjp& call) const override {
    graph::Gradients gradients(2);
    const Tensor dy = *call.cotangents[0];
    if (call.needed[0]) {
      const auto formula = [](Numbers v) { return where_nonzero(v[0] * v[2] * pow(v[1], v[2] + -1.0F), v[2]); };
      const Tensor all = ops::apply<Elementwise>({dy, call.inputs[0], call.inputs[1]}, "pow_base_gradient", formula);
      gradients[0] = ops::sum_to_shape(all, call.inputs[0].shape());
    }
    if (call.needed[1]) {
      const auto formula = [](Numbers v) {
        return where_nonzero(v[0] * v[3] * log(v[1]), abs(v[1]) + relu(v[2] * -1.0F));
      };
      const Tensor all = ops::apply<Elementwise>({dy, call.inputs[0], call.inputs[1], call.outputs[0]},
                                                 "pow_exponent_gradient", formula);
      gradients[1] = ops::sum_to_shape(all, call.inputs[1].shape());
    }
    return gradients;
  }
};

}  // namespace

Tensor exp(Tensor x) {
  return unary(
      "exp", x, [](Numbers v) { return exp(v[0]); }, [](Numbers v) { return v[0] * v[1]; });
}

Tensor log(Tensor x) {
  return unary(
      "log", x, [](Numbers v) { return log(v[0]); }, [](Numbers v) { return v[0] / v[1]; }, GradientOf::input);
}

Tensor sqrt(Tensor x) {
  return unary(
      "sqrt", x, [](Numbers v) { return sqrt(v[0]); }, [](Numbers v) { return v[0] * 0.5F / v[1]; });
}

Tensor abs(Tensor x) {
  return unary(
      "abs", x, [](Numbers v) { return abs(v[0]); }, [](Numbers v) { return v[0] * sign(v[1]); }, GradientOf::input);
}

Tensor sin(Tensor x) {
  return unary(
      "sin", x, [](Numbers v) { return sin(v[0]); }, [](Numbers v) { return v[0] * cos(v[1]); }, GradientOf::input);
}

Tensor cos(Tensor x) {
  return unary(
      "cos", x, [](Numbers v) { return cos(v[0]); }, [](Numbers v) { return v[0] * sin(v[1]) * -1.0F; },
      GradientOf::input);
}

Tensor pow(Tensor x, float exponent) {
  if (!std::isfinite(exponent)) fail("pow", fmt::format("expected a finite exponent, got {}", exponent));
  const auto gradient = [exponent](Numbers v) {
    return exponent == 0 ? v[0] * 0.0F : v[0] * (power(v[1], exponent - 1) * exponent);
  };
  return unary("pow", x, [exponent](Numbers v) { return power(v[0], exponent); }, gradient, GradientOf::input,
               {{"exponent", exponent}});
}

Tensor pow(Tensor a, Tensor b) {
  return ops::apply<Pow>({a, b});
}

}  // namespace halfstep
