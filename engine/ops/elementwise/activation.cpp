#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <cmath>

#include "ops/elementwise/unary.h"

namespace halfstep {

using ops::GradientOf;
using ops::Numbers;
using ops::unary;

Tensor relu(Tensor x) {
  return unary(
      "relu", x, [](Numbers v) { return relu(v[0]); }, [](Numbers v) { return where_nonzero(v[0], v[1]); });
}

Tensor relu6(Tensor x) {
  return unary(
      "relu6", x, [](Numbers v) { return at_most(relu(v[0]), 6); },
      [](Numbers v) { return where_nonzero(where_nonzero(v[0], v[1]), 6.0F - v[1]); });
}

// The result has the sign of the input; for a negative input it may also be 0.
Tensor leaky_relu(Tensor x, float slope) {
  if (!std::isfinite(slope) || slope < 0) {
    fail("leaky_relu", fmt::format("expected a slope of 0 or more, got {}", slope));
  }
  if (slope == 0) return relu(x);  // drivers make 0 of NaN times 0
  return unary(
      "leaky_relu", x, [slope](Numbers v) { return where_positive_or_scaled(v[0], v[0], slope); },
      [slope](Numbers v) { return where_positive_or_scaled(v[0], v[1], slope); }, GradientOf::result,
      {{"slope", slope}});
}

Tensor sigmoid(Tensor x) {
  return unary(
      "sigmoid", x, [](Numbers v) { return sigmoid(v[0]); }, [](Numbers v) { return v[0] * v[1] * (1.0F - v[1]); });
}

Tensor tanh(Tensor x) {
  return unary(
      "tanh", x, [](Numbers v) { return tanh(v[0]); }, [](Numbers v) { return v[0] * (1.0F - v[1] * v[1]); });
}

Tensor silu(Tensor x) {
  const auto gradient = [](Numbers v) {
    const ops::Number s = sigmoid(v[1]);
    return v[0] * s * (v[1] * (1.0F - s) + 1.0F);
  };
  return unary(
      "silu", x, [](Numbers v) { return v[0] * sigmoid(v[0]); }, gradient, GradientOf::input);
}

Tensor hardswish(Tensor x) {
  return unary(
      "hardswish", x, [](Numbers v) { return v[0] * at_most(relu(v[0] * (1.0F / 6.0F) + 0.5F), 1); },
      [](Numbers v) { return v[0] * hardswish_slope(v[1]); }, GradientOf::input);
}

Tensor gelu(Tensor x, Gelu form) {
  if (form == Gelu::tanh) {
    return unary(
        "gelu_tanh", x, [](Numbers v) { return gelu_tanh(v[0]); },
        [](Numbers v) { return v[0] * gelu_tanh_slope(v[1]); }, GradientOf::input);
  }
  return unary(
      "gelu", x, [](Numbers v) { return gelu(v[0]); }, [](Numbers v) { return v[0] * gelu_slope(v[1]); },
      GradientOf::input);
}

Tensor swiglu(Tensor gate, Tensor x) {
  return mul(silu(gate), x);
}

Tensor geglu(Tensor gate, Tensor x, Gelu form) {
  return mul(gelu(gate, form), x);
}

}  // namespace halfstep
