#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "plan/layout.h"
#include "reference/array.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

constexpr float epsilon = 1e-3F;

Array norm_of(const Array& x, const Array* weight, const Array* bias, bool centred) {
  const auto columns = static_cast<std::size_t>(x.shape.back());
  Array y(x.shape);
  for (std::size_t row = 0; row < x.values.size() / columns; ++row) {
    const double* v = &x.values[row * columns];
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < columns && centred; ++i) mean += v[i] / static_cast<double>(columns);
    for (std::size_t i = 0; i < columns; ++i) variance += (v[i] - mean) * (v[i] - mean) / static_cast<double>(columns);
    for (std::size_t i = 0; i < columns; ++i) {
      double result = (v[i] - mean) / std::sqrt(variance + static_cast<double>(epsilon));
      if (weight != nullptr) result *= weight->values[i];
      if (bias != nullptr) result += bias->values[i];
      y.values[row * columns + i] = result;
    }
  }
  return y;
}

enum class Kind : std::uint8_t { layer, layer_weight, layer_bias, rms, rms_weight };

Check check_of(const Shape& shape, Kind kind) {
  const Shape columns{shape.back()};
  Check check;
  check.name = "norm " + to_string(shape);
  check.inputs = {{uniform(shape, 1, -2, 2)}};
  check.arithmetic = 5e-6;
  const bool weighted = kind == Kind::layer_weight || kind == Kind::layer_bias || kind == Kind::rms_weight;
  if (weighted) check.inputs.push_back({uniform(columns, 2, 0.5, 2)});
  if (kind == Kind::layer_bias) check.inputs.push_back({uniform(columns, 3)});
  const bool centred = kind != Kind::rms && kind != Kind::rms_weight;
  check.build = [=](std::span<const Tensor> x) {
    std::optional<Tensor> weight;
    std::optional<Tensor> bias;
    if (weighted) weight.emplace(x[1]);
    if (kind == Kind::layer_bias) bias.emplace(x[2]);
    return centred ? layer_norm(x[0], weight, bias, epsilon) : rms_norm(x[0], weight, epsilon);
  };
  check.reference = [=](std::span<const Array> x) {
    return norm_of(x[0], weighted ? &x[1] : nullptr, kind == Kind::layer_bias ? &x[2] : nullptr, centred);
  };
  return check;
}

const std::vector<Kind> kinds{Kind::layer, Kind::layer_weight, Kind::layer_bias, Kind::rms, Kind::rms_weight};

}  // namespace

TEST_CASE("layer norm and RMS norm") {
  for (const Kind kind : kinds) {
    for (const Shape& shape : {Shape{8}, Shape{1, 1}, Shape{3, 5}, Shape{2, 3, 37}, Shape{300, 6}, Shape{3, 1500}}) {
      testing::check_operator(check_of(shape, kind));
    }
  }
}

TEST_CASE("gradients of layer norm and RMS norm") {
  for (const Kind kind : kinds) {
    for (const Shape& shape : {Shape{8}, Shape{3, 5}, Shape{2, 3, 7}, Shape{5, 68}}) {
      Check check = check_of(shape, kind);
      check.magnitude = 4;
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("gradients of the weights of layer norm and RMS norm are sums over many rows") {
  for (const Kind kind : {Kind::layer_bias, Kind::rms_weight}) {
    Check check = check_of({1111, 3}, kind);
    check.inputs[0].kind = testing::Kind::state;
    check.dtypes = {DType::f32};
    check.magnitude = 64;
    testing::check_gradient(check);
  }
}

TEST_CASE("the variance of rows far from 0 does not cancel") {
  Check check = check_of({5, 67}, Kind::layer);
  for (double& v : check.inputs[0].values.values) v = 1000 + std::round(v * 8) / 8;
  check.dtypes = {DType::f32};
  check.arithmetic = 5e-5;  // the mean itself is rounded to f32
  testing::check_operator(check);
}

TEST_CASE("the mean of a constant row is the constant, and of one that lies far from 0 keeps what varies") {
  for (const std::int64_t columns : {5, 64, 1024, 4096}) {
    Check check = check_of({3, columns}, Kind::layer);
    check.dtypes = {DType::f32};
    check.targets = testing::targets();
    for (double& v : check.inputs[0].values.values) v = static_cast<double>(1000.1F);
    testing::check_operator(check);  // 0, where a sum of the elements is off by as much as 0.4
    for (std::size_t i = 0; i < check.inputs[0].values.values.size(); i += 3)
      check.inputs[0].values.values[i] += 1.0 / 64;
    check.arithmetic = 1e-2;  // the mean itself is rounded to f32: half a unit of 1000 beside a deviation of 0.007
    testing::check_operator(check);
  }
}

TEST_CASE("beyond the limits of drivers: norms of long rows and of many") {
  const std::int64_t limit = std::min<std::int64_t>(testing::context().target().max_rounds, 65'535);
  for (const Kind kind : {Kind::layer, Kind::rms}) {
    for (const Shape& shape : {Shape{3, 300'001 * limit / 65'535}, Shape{1'000'000, 3}}) {
      const auto quads = static_cast<std::uint64_t>(plan::layout(shape).quads());
      if (!testing::device_takes(quads / 64 + 256, 16 * quads)) continue;
      Check check = check_of(shape, kind);
      check.dtypes = {DType::f32};
      testing::check_operator(check);
    }
  }
}

TEST_CASE("layer norm and RMS norm say what they cannot take") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 6});
  const Tensor five = graph.input("five", {5});
  CHECK_THROWS_WITH_AS(layer_norm(x, five), "[layer_norm] expected a weight or bias f32 {6}, got f32 {5}", Error);
  CHECK_THROWS_WITH_AS(rms_norm(x, five), "[rms_norm] expected a weight or bias f32 {6}, got f32 {5}", Error);
  CHECK_THROWS_WITH_AS(rms_norm(x, {}, 0), "[rms_norm] expected an epsilon of 2^-125 or more, got 0", Error);
  CHECK_THROWS_WITH_AS(layer_norm(graph.input("scalar", {})), "[layer_norm] expected x {..., c}, got f32 {}", Error);
}
