#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "reference/array.h"
#include "reference/elementwise.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// softmax along an axis, or its logarithm.
Array softmax_of(const Array& x, std::size_t axis, bool logarithm) {
  std::size_t inner = 1;
  for (std::size_t i = axis + 1; i < x.shape.size(); ++i) inner *= x.extent(i);
  const std::size_t extent = x.extent(axis);
  Array y(x.shape);
  for (std::size_t line = 0; line < x.values.size() / extent; ++line) {
    const std::size_t begin = line / inner * inner * extent + line % inner;
    double top = -infinity;
    for (std::size_t i = 0; i < extent; ++i) top = std::max(top, x.values[begin + i * inner]);
    double total = 0;
    if (top > -infinity) {
      for (std::size_t i = 0; i < extent; ++i) total += std::exp(x.values[begin + i * inner] - top);
    }
    for (std::size_t i = 0; i < extent; ++i) {
      const double v = x.values[begin + i * inner];
      const double log_share = total == 0 ? -infinity : v - top - std::log(total);
      y.values[begin + i * inner] = logarithm ? log_share : std::exp(log_share);
    }
  }
  return y;
}

Check check_of(Array x, std::int64_t axis, bool logarithm) {
  const auto place = static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.shape.size()) : axis);
  return {.name = std::string(logarithm ? "log_softmax " : "softmax ") + to_string(x.shape),
          .build = [=](std::span<const Tensor> v) { return logarithm ? log_softmax(v[0], axis) : softmax(v[0], axis); },
          .inputs = {{std::move(x)}},
          .reference = [=](std::span<const Array> v) { return softmax_of(v[0], place, logarithm); },
          .arithmetic = 2e-6};
}

/// The gradient of softmax, given by its formula.
Check gradient_check(const Shape& shape, bool logarithm) {
  return {.name = "gradient of " + to_string(shape),
          .build =
              [=](std::span<const Tensor> v) {
                const Tensor y = logarithm ? log_softmax(v[0]) : softmax(v[0]);
                const Tensor loss = sum(mul(y, v[1]));
                const graph::ValueId wanted[] = {v[0].id()};
                graph::Ir& ir = graph::ir_of(loss);
                return ir.tensor(passes::add_backward(ir, loss.id(), v[2].id(), wanted)[0]);
              },
          .inputs = {{uniform(shape, 11, -4, 4)}, {uniform(shape, 12)}, {Array({}, 1.0)}},
          .reference =
              [=](std::span<const Array> v) {
                Array y = softmax_of(v[0], shape.size() - 1, false);
                const auto columns = static_cast<std::size_t>(shape.back());
                for (std::size_t row = 0; row < y.values.size() / columns; ++row) {
                  double total = 0;
                  for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
                    total += logarithm ? v[1].values[i] : v[1].values[i] * y.values[i];
                  }
                  for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
                    const double dy = v[1].values[i];
                    y.values[i] = logarithm ? dy - y.values[i] * total : y.values[i] * (dy - total);
                  }
                }
                return y;
              },
          .arithmetic = 1e-5,
          .dtypes = {DType::f32}};
}

/// Columns that one invocation cannot read three times.
std::int64_t long_row() {
  const std::int64_t limit = std::min<std::int64_t>(testing::context().target().max_rounds, 65'535);
  return 300'001 * limit / 65'535;
}

}  // namespace

TEST_CASE("softmax and its logarithm") {
  for (const Shape& shape :
       {Shape{1}, Shape{5}, Shape{3, 4}, Shape{7, 3}, Shape{2, 3, 37}, Shape{300, 5}, Shape{3, 1500}}) {
    for (const bool logarithm : {false, true}) {
      testing::check_operator(check_of(uniform(shape, 1, -5, 5), -1, logarithm));
    }
  }
}

TEST_CASE("softmax and its logarithm along other axes") {
  for (const std::int64_t axis : {0, 1, 2, -2}) {
    for (const bool logarithm : {false, true}) {
      testing::check_operator(check_of(uniform({3, 5, 7}, 2, -5, 5), axis, logarithm));
      Check check = check_of(uniform({2, 3, 5}, 3, -2, 2), axis, logarithm);
      check.roundings = 3;
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("gradients of softmax and its logarithm") {
  for (const Shape& shape : {Shape{1}, Shape{5}, Shape{3, 4}, Shape{2, 3, 7}, Shape{2, 67}}) {
    for (const bool logarithm : {false, true}) {
      Check check = check_of(uniform(shape, 4, -2, 2), -1, logarithm);
      check.roundings = 4;
      check.magnitude = 2;
      check.arithmetic = 4e-6;
      testing::check_gradient(check);
    }
  }
}

TEST_CASE("softmax of large numbers does not overflow") {
  testing::check_operator(check_of(uniform({17, 5}, 5, -60000, 60000), -1, false));
  testing::check_operator(check_of(Array({3, 5}, 65000.0), -1, false));
  testing::check_operator(check_of(Array({3, 5}, -65000.0), -1, true));
}

TEST_CASE("softmax with masks: what is minus infinity has probability 0, and rows of nothing else are 0") {
  Array x = uniform({3, 6}, 6);
  for (std::size_t i = 0; i < 6; ++i) x.values[6 + i] = -infinity;
  x.values[1] = x.values[2] = x.values[17] = -infinity;
  testing::check_operator(check_of(x, -1, false));
  testing::check_operator(check_of(x, -1, true));
  // By an additive mask that broadcasts, with a gradient for the scores.
  Array mask({3, 1, 6});
  for (std::size_t i = 0; i < 18; ++i) mask.values[i] = i % 4 == 1 || i / 6 == 1 ? -infinity : 0;
  Check check{.name = "masked softmax",
              .build = [](std::span<const Tensor> v) { return softmax(add(v[0], v[1])); },
              .inputs = {{uniform({3, 2, 6}, 7)}, {mask}},
              .reference =
                  [](std::span<const Array> v) {
                    return softmax_of(reference::zip(v[0], v[1], [](double a, double b) { return a + b; }), 2, false);
                  },
              .arithmetic = 2e-6,
              .roundings = 2};
  testing::check_operator(check);
  check.build = [mask](std::span<const Tensor> v) { return softmax(add(v[0], v[1])); };
  check.inputs[1].kind = testing::Kind::state;
  check.dtypes = {DType::f32};
  check.roundings = 4;
  testing::check_gradient(check);
}

TEST_CASE("a number that is none makes its row of softmax NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool logarithm : {false, true}) {
    Check check = check_of(uniform({3, 9}, 8), -1, logarithm);
    check.inputs[0].values.values[13] = nan;
    const auto reference = check.reference;
    check.reference = [=](std::span<const Array> v) {
      Array y = reference(v);
      for (std::size_t i = 9; i < 18; ++i) y.values[i] = nan;
      return y;
    };
    testing::check_operator(check);
  }
}

TEST_CASE("beyond the limits of drivers: softmax of long rows and of many") {
  if (!testing::device_takes(1'000'000 / 64, 16'000'000)) return;
  // One invocation a row, which is read three times, would take more rounds than the limit.
  for (const bool logarithm : {false, true}) {
    Check check = check_of(uniform({3, long_row()}, 9, -4, 4), -1, logarithm);
    check.dtypes = {DType::f32};
    testing::check_operator(check);
    testing::check_operator(gradient_check({3, long_row()}, logarithm));
  }
  Check check = check_of(uniform({1'000'000, 3}, 10, -4, 4), -1, false);
  check.dtypes = {DType::f32};
  testing::check_operator(check);
}

TEST_CASE("softmax says what it cannot take") {
  Graph graph;
  CHECK_THROWS_WITH_AS(softmax(graph.input("x", {2, 3}), 2), "[softmax] expected an axis of f32 {2, 3}, got 2", Error);
  CHECK_THROWS_WITH_AS(log_softmax(graph.input("y", {2, 3}), -3),
                       "[log_softmax] expected an axis of f32 {2, 3}, got -3", Error);
  CHECK_THROWS_WITH_AS(softmax(graph.input("z", {2, 3}, DType::u32)),
                       "[softmax] expected a tensor of f32, f16 or bf16, got u32 {2, 3}", Error);
}
