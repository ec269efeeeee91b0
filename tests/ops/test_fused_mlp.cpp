#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

struct Activation {
  std::function<Tensor(Tensor)> apply;
  std::function<double(double)> formula;
};

double logistic(double v) {
  return 1 / (1 + std::exp(-v));
}

std::vector<Activation> activations() {
  return {{relu, [](double v) { return std::max(v, 0.0); }},
          {nullptr, [](double v) { return v; }},
          {relu6, [](double v) { return std::min(std::max(v, 0.0), 6.0); }},
          {[](Tensor x) { return leaky_relu(x, 0.25F); }, [](double v) { return v > 0 ? v : 0.25 * v; }},
          {sigmoid, logistic},
          {[](Tensor x) { return halfstep::tanh(x); }, [](double v) { return std::tanh(v); }},
          {silu, [](double v) { return v * logistic(v); }},
          {hardswish, [](double v) { return v * std::min(std::max(v / 6 + 0.5, 0.0), 1.0); }},
          {[](Tensor x) { return gelu(x); }, [](double v) { return v * 0.5 * std::erfc(-v / std::sqrt(2.0)); }},
          {[](Tensor x) { return gelu(x, Gelu::tanh); },
           [](double v) { return v * logistic(std::sqrt(8 / 3.14159265358979323846) * (v + 0.044715 * v * v * v)); }}};
}

/// A layer of a reference: of x {rows, in} in place.
Array layer_of(const Array& x, const Array& weight, const Array* bias, const std::function<double(double)>& formula) {
  Array y({x.shape[0], weight.shape[1]});
  for (std::size_t row = 0; row < x.extent(0); ++row) {
    for (std::size_t n = 0; n < weight.extent(1); ++n) {
      double sum = bias == nullptr ? 0 : bias->values[n];
      for (std::size_t k = 0; k < weight.extent(0); ++k) {
        sum += x.values[row * weight.extent(0) + k] * weight.values[k * weight.extent(1) + n];
      }
      y.values[row * weight.extent(1) + n] = formula(sum);
    }
  }
  return y;
}

struct Sizes {
  std::int64_t rows = 1, in = 1, width = 1, hidden = 1, out = 1;
  bool biases = true;
};

/// Of the operator as it is trained, or as it predicts.
Check check_of(const Sizes& size, const Activation& activation, bool predicts) {
  const std::size_t step = size.biases ? 2 : 1;
  Check check;
  check.name = predicts ? "fused_mlp_inference" : "fused_mlp";
  check.inputs.push_back({uniform({size.rows, size.in}, 1)});
  for (std::int64_t layer = 0; layer <= size.hidden; ++layer) {
    const std::int64_t k = layer == 0 ? size.in : size.width;
    const std::int64_t n = layer == size.hidden ? size.out : size.width;
    const double bound = 1.7 / std::sqrt(static_cast<double>(k));
    check.inputs.push_back({uniform({k, n}, static_cast<std::uint32_t>(10 + layer), -bound, bound)});
    if (size.biases) check.inputs.push_back({uniform({n}, static_cast<std::uint32_t>(30 + layer), -0.5, 0.5)});
  }
  check.build = [=](std::span<const Tensor> x) {
    std::vector<DenseLayer> layers;
    for (std::size_t i = 1; i < x.size(); i += step) {
      layers.push_back({x[i], {}});
      if (step == 2) layers.back().bias = x[i + 1];
    }
    const Tensor y = fused_mlp(x[0], layers, {.activation = activation.apply});
    if (!predicts) return y;
    const std::shared_ptr<const graph::Operator> op = graph::ir_of(y).nodes.back().op;
    return op->inference(x).value();
  };
  check.reference = [=](std::span<const Array> x) {
    Array values = x[0];
    for (std::size_t i = 1; i < x.size(); i += step) {
      const bool last = i + step >= x.size();
      values = layer_of(values, x[i], step == 2 ? &x[i + 1] : nullptr,
                        last ? [](double v) { return v; } : activation.formula);
    }
    return values;
  };
  check.arithmetic = 4e-6;
  check.magnitude = 1;
  check.roundings = static_cast<int>(3 * size.hidden + 3);
  // Drivers that do not load uniforms well take minutes to compile the unrolled layers of a wide network.
  if (size.width <= 16) check.targets = testing::product_targets();
  return check;
}

}  // namespace

TEST_CASE("a fused network with every activation, and its gradients") {
  bool first = true;
  for (const Activation& activation : activations()) {
    Check predicted = check_of({37, 3, 5, 2, 6}, activation, true);
    if (!first) predicted.dtypes = {DType::f32};
    testing::check_operator(predicted);
    first = false;
    // What trains is composed of operators that have tests of their own in every type.
    Check check = check_of({3, 3, 4, 2, 2}, activation, false);
    check.magnitude = 4;
    check.dtypes = {DType::f32};
    check.targets.resize(1);
    testing::check_gradient(check);
  }
}

TEST_CASE("a fused network of every width and depth") {
  const Activation activation = activations()[5];
  for (const Sizes& size : {Sizes{131, 2, 16, 1, 1}, Sizes{67, 32, 32, 4, 3, false}, Sizes{7, 128, 33, 8, 5},
                            Sizes{65, 6, 64, 2, 70}, Sizes{9, 17, 128, 1, 3}, Sizes{1, 1, 1, 1, 1}}) {
    CAPTURE(size.width);
    CAPTURE(size.hidden);
    Check check = check_of(size, activation, true);
    check.arithmetic = 2e-5;
    testing::check_operator(check);
  }
  Check check = check_of({3, 5, 16, 8, 1, false}, activation, false);
  testing::check_operator(check);
  check.magnitude = 4;
  check.dtypes = {DType::f32, DType::f16};
  check.targets.resize(1);
  testing::check_gradient(check);
}

TEST_CASE("a network that is no operator of its own is computed layer by layer") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3});
  const DenseLayer first{graph.input("first", {3, 8})};
  const DenseLayer second{graph.input("second", {8, 4})};
  const DenseLayer third{graph.input("third", {4, 2})};
  const auto last_name = [](Tensor y) { return graph::ir_of(y).nodes.back().op->name(); };
  CHECK(last_name(fused_mlp(x, {first, second})) == "fused_mlp");
  CHECK(last_name(fused_mlp(x, {first, second}, {.output_activation = sigmoid})) == "sigmoid");
  CHECK(last_name(fused_mlp(x, {first})) == "linear");
  CHECK(last_name(fused_mlp(x, {first, second, third})) == "linear");
  CHECK(last_name(fused_mlp(x, {first, second}, {.activation = [](Tensor v) { return mul(v, v); }})) == "linear");
  CHECK_THROWS_WITH_AS(fused_mlp(x, {}), "[fused_mlp] expected one layer or more, got none", Error);
  CHECK_THROWS_WITH_AS(fused_mlp(x, {second}), "[fused_mlp] expected weight 0 {3, out}, got f32 {8, 4}", Error);
  CHECK_THROWS_WITH_AS(fused_mlp(x, {{first.weight, x}}), "[fused_mlp] expected bias 0 {8}, got f32 {2, 3}", Error);
}
