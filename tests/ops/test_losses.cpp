#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "passes/backward.h"
#include "reference/losses.h"
#include "step/execution.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::Operand;
using testing::uniform;
using testing::whole;

namespace {

/// Few and many rows and classes: one workgroup and several, one invocation per row and several.
const std::vector<Shape> logit_shapes{{1, 1}, {1, 2}, {7, 3}, {64, 10}, {5, 101}, {300, 37}, {3, 1500}, {2111, 10}};

Check cross_entropy_check(Array logits, Array labels) {
  return {.name = "cross_entropy",
          .build = [](std::span<const Tensor> x) { return cross_entropy(x[0], x[1]); },
          .inputs = {{std::move(logits)}, {std::move(labels), testing::Kind::labels}},
          .reference = [](std::span<const Array> x) { return reference::cross_entropy(x[0], x[1]); },
          .magnitude = 1};
}

Check accuracy_check(Array logits, Array labels) {
  return {.name = "accuracy",
          .build = [](std::span<const Tensor> x) { return accuracy(x[0], x[1]); },
          .inputs = {{std::move(logits)}, {std::move(labels), testing::Kind::labels}},
          .reference = [](std::span<const Array> x) { return reference::accuracy(x[0], x[1]); }};
}

Array labels_for(const Shape& logits) {
  return whole({logits[0]}, 13, static_cast<std::uint32_t>(logits[1]));
}

std::vector<float> as_floats(const Array& array) {
  return {array.values.begin(), array.values.end()};
}

/// Results of a graph on logits in f32 and labels.
std::vector<float> run_on(const Array& logits, const Array& labels, const plan::Target& target, bool gradient) {
  Graph graph = testing::settled_graph();
  const Tensor x = graph.input("logits", logits.shape);
  const Tensor y = graph.input("labels", labels.shape, DType::u32);
  const Tensor seed = graph.input("seed", {});
  Tensor wanted = cross_entropy(x, y);
  if (gradient) {
    const graph::ValueId inputs[] = {x.id()};
    wanted = graph::ir_of(x).tensor(passes::add_backward(graph::ir_of(x), wanted.id(), seed.id(), inputs).front());
  }
  step::ExecutionOptions options;
  options.target = target;
  step::Execution execution(testing::context(), graph.ir(), {wanted.id()}, options);
  execution.set(x.id(), as_floats(logits));
  execution.set(y.id(), std::vector<std::uint32_t>(labels.values.begin(), labels.values.end()));
  if (gradient) execution.set(seed.id(), std::vector<float>{1});
  execution.run();
  return execution.floats(wanted.id());
}

std::vector<float> gradient_of(const Array& logits, const Array& labels, const plan::Target& target) {
  return run_on(logits, labels, target, true);
}

/// The loss of each row separately.
std::vector<float> losses_of(const Array& logits, const Array& labels, const plan::Target& target) {
  const std::size_t classes = logits.extent(1);
  std::vector<float> losses;
  for (std::size_t row = 0; row < logits.extent(0); ++row) {
    const auto begin = logits.values.begin() + static_cast<std::ptrdiff_t>(row * classes);
    const Array one({1, logits.shape[1]}, std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(classes)));
    losses.push_back(run_on(one, Array({1}, labels.values[row]), target, false).front());
  }
  return losses;
}

/// (softmax(logits) - [is the label]) / rows, of element `i`.
double softmax_gradient(const Array& logits, const Array& labels, std::size_t i) {
  const std::size_t classes = logits.extent(1);
  const std::size_t row = i / classes;
  double sum = 0;
  for (std::size_t c = 0; c < classes; ++c) sum += std::exp(logits.values[row * classes + c] - logits.values[i]);
  const bool is_label = static_cast<double>(i % classes) == labels.values[row];
  return (1 / sum - (is_label ? 1 : 0)) / static_cast<double>(logits.extent(0));
}

/// Every third row gets ignored_label.
Array with_ignored(Array labels) {
  for (std::size_t i = 0; i < labels.values.size(); i += 3) labels.values[i] = ignored_label;
  return labels;
}

/// With ignored_label in place of another label.
Array marked(Array labels, std::uint32_t ignore) {
  std::ranges::replace(labels.values, static_cast<double>(ignore), static_cast<double>(ignored_label));
  return labels;
}

}  // namespace

TEST_CASE("cross-entropy") {
  for (const Shape& shape : logit_shapes) {
    CAPTURE(to_string(shape));
    testing::check_operator(cross_entropy_check(uniform(shape, 14, -5, 5), labels_for(shape)));
    testing::check_operator(cross_entropy_check(uniform(shape, 15, -5, 5), with_ignored(labels_for(shape))));
  }
}

TEST_CASE("gradient of cross-entropy") {
  for (const Shape& shape : {Shape{1, 1}, Shape{7, 3}, Shape{64, 10}, Shape{5, 101}}) {
    CAPTURE(to_string(shape));
    Check check = cross_entropy_check(uniform(shape, 16, -4, 4), with_ignored(labels_for(shape)));
    check.magnitude = 2.0 / static_cast<double>(shape[0]);
    testing::check_gradient(check);
  }
}

TEST_CASE("cross-entropy and its gradient do not depend on what is added to all logits of a row") {
  const Array labels = whole({6}, 2, 9);
  Array logits = whole({6, 9}, 1, 17);  // quarters, so that f32 represents them beside a million
  for (const double shift : {0.0, 1e4, -1e4, 1e6, -1e6}) {
    CAPTURE(shift);
    Array shifted = logits;
    for (double& v : shifted.values) v = v / 4 + shift;
    Check check = cross_entropy_check(shifted, labels);
    check.dtypes = {DType::f32};
    check.magnitude = 0;
    check.arithmetic = 5e-7;
    testing::check_operator(check);
    for (const plan::Target& target : testing::targets()) {
      const std::vector<float> got = gradient_of(shifted, labels, target);
      for (std::size_t i = 0; i < got.size(); ++i) {
        CAPTURE(i);
        CHECK(static_cast<double>(got[i]) == doctest::Approx(softmax_gradient(shifted, labels, i)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("cross-entropy of infinite logits is what PyTorch has") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  // Minus infinity everywhere but at the label; only at the label; everywhere; and one certain class.
  const Array logits({4, 5}, {-inf, -inf, 2,    -inf, -inf, 0, -inf, 0,   0, 0,  //
                              -inf, -inf, -inf, -inf, -inf, 0, 0,    inf, 0, 0});
  const Array labels({4}, {2, 1, 0, 2});
  for (const plan::Target& target : testing::targets()) {
    const std::vector<float> losses = losses_of(logits, labels, target);
    CHECK(losses[0] == 0);
    CHECK(losses[1] == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(losses[2]));
    CHECK(std::isnan(losses[3]));
    const std::vector<float> gradient = gradient_of(logits, labels, target);
    for (std::size_t i = 0; i < 5; ++i) {
      CAPTURE(i);
      CHECK(gradient[i] == 0);
      CHECK(gradient[5 + i] == doctest::Approx(i == 1 ? -0.25 : 0.0625));
      CHECK(std::isnan(gradient[10 + i]));
      CHECK(std::isnan(gradient[15 + i]));
    }
  }
}

TEST_CASE("cross-entropy with smoothed labels, and its gradient") {
  constexpr float smoothing = 0.1F;
  for (const Shape& shape : {Shape{1, 2}, Shape{7, 3}, Shape{64, 10}, Shape{5, 101}, Shape{3, 1500}}) {
    CAPTURE(to_string(shape));
    Check check = cross_entropy_check(uniform(shape, 16, -4, 4), with_ignored(labels_for(shape)));
    check.build = [](std::span<const Tensor> x) { return cross_entropy(x[0], x[1], smoothing); };
    check.reference = [](std::span<const Array> x) {
      return reference::cross_entropy(x[0], x[1], static_cast<double>(smoothing));
    };
    testing::check_operator(check);
    check.magnitude = 2.0 / static_cast<double>(shape[0]);
    if (elements(shape) < 1000) testing::check_gradient(check);
  }
  Graph graph;
  const Tensor logits = graph.input("logits", {2, 3});
  CHECK_THROWS_WITH_AS(cross_entropy(logits, graph.input("labels", {2}, DType::u32), 1), doctest::Contains("smoothing"),
                       Error);
}

TEST_CASE("cross-entropy of large logits does not overflow") {
  testing::check_operator(cross_entropy_check(uniform({17, 5}, 17, -60000, 60000), labels_for({17, 5})));
  testing::check_operator(cross_entropy_check(Array({3, 5}, 65000.0), labels_for({3, 5})));
  testing::check_operator(cross_entropy_check(Array({3, 5}, -65000.0), labels_for({3, 5})));
}

TEST_CASE("a batch of which no row counts has loss, gradient and accuracy 0") {
  const Array none({6}, static_cast<double>(ignored_label));
  testing::check_operator(cross_entropy_check(uniform({6, 5}, 18), none));
  testing::check_gradient(cross_entropy_check(uniform({6, 5}, 18), none));
  testing::check_operator(accuracy_check(uniform({6, 5}, 18), none));
}

TEST_CASE("rows with the label to ignore do not count, be it a class or none") {
  for (const std::uint32_t ignore : {2U, 4000U}) {
    Array labels = labels_for({64, 10});
    for (std::size_t i = 0; i < labels.values.size(); i += 5) labels.values[i] = static_cast<double>(ignore);
    Check check = cross_entropy_check(uniform({64, 10}, 18, -4, 4), labels);
    check.build = [=](std::span<const Tensor> x) { return cross_entropy(x[0], x[1], 0, ignore); };
    check.reference = [=](std::span<const Array> x) { return reference::cross_entropy(x[0], marked(x[1], ignore)); };
    testing::check_operator(check);
    check.magnitude = 2.0 / 64;
    testing::check_gradient(check);
    check.inputs[1].values = Array({64}, static_cast<double>(ignore));
    testing::check_operator(check);
    testing::check_gradient(check);
    Check right = accuracy_check(uniform({64, 10}, 18, -4, 4), labels);
    right.build = [=](std::span<const Tensor> x) { return accuracy(x[0], x[1], ignore); };
    right.reference = [=](std::span<const Array> x) { return reference::accuracy(x[0], marked(x[1], ignore)); };
    testing::check_operator(right);
  }
}

TEST_CASE("a label that is no class makes the loss NaN and counts as wrong") {
  Array labels({6}, 1.0);
  labels.values[3] = 5;
  testing::check_operator(cross_entropy_check(uniform({6, 5}, 19), labels));
  testing::check_operator(accuracy_check(uniform({6, 5}, 19), labels));
  labels.values[3] = 4294967294.0;
  testing::check_operator(cross_entropy_check(uniform({6, 5}, 19), labels));
}

TEST_CASE("a logit that is not a number makes the loss NaN") {
  Array logits = uniform({6, 5}, 19);
  logits.values[13] = std::numeric_limits<double>::quiet_NaN();
  Check check = cross_entropy_check(logits, labels_for({6, 5}));
  check.reference = [&](std::span<const Array>) { return Array({}, {logits.values[13]}); };
  testing::check_operator(check);
}

TEST_CASE("accuracy") {
  for (const Shape& shape : logit_shapes) {
    CAPTURE(to_string(shape));
    testing::check_operator(accuracy_check(uniform(shape, 20), labels_for(shape)));
    testing::check_operator(accuracy_check(uniform(shape, 20), with_ignored(labels_for(shape))));
  }
}

TEST_CASE("a row with a logit that is not a number is not right") {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  constexpr double least = -std::numeric_limits<double>::infinity();
  Array logits({6, 2}, {1, 2, none, 1, 1, none, none, none, least, least, 2, 1});
  Check check = accuracy_check(logits, Array({6}, {1, 1, 0, 1, 0, 1}));
  check.reference = [](std::span<const Array>) { return Array({}, {2.0 / 6}); };
  testing::check_operator(check);
}

TEST_CASE("the first of equal logits is the prediction") {
  testing::check_operator(accuracy_check(whole({211, 7}, 21, 3), labels_for({211, 7})));
  testing::check_operator(accuracy_check(whole({37, 301}, 22, 3), labels_for({37, 301})));
}

namespace {

using Loss = Tensor (*)(Tensor, Tensor);
using Function = double (*)(double, double);

Check pair_check(const char* name, Loss loss, Function f, Array a, Array b) {
  return {.name = name,
          .build = [=](std::span<const Tensor> x) { return loss(x[0], x[1]); },
          .inputs = {{std::move(a)}, {std::move(b)}},
          .reference = [=](std::span<const Array> x) { return reference::mean_of(x[0], x[1], f); }};
}

double squared(double a, double b) {
  return (a - b) * (a - b);
}
double huber(double a, double b) {
  const double d = std::abs(a - b);
  return d < 0.75 ? d * d / 2 : 0.75 * (d - 0.375);
}
Tensor huber_of(Tensor a, Tensor b) {
  return huber_loss(a, b, 0.75F);
}
double bernoulli(double a, double b) {
  return std::max(a, 0.0) - a * b + std::log1p(std::exp(-std::abs(a)));
}

/// Every loss of two tensors, with values in every branch of its definition.
std::vector<Check> pair_checks(const Shape& shape) {
  const Array a = uniform(shape, 23, -2, 2);
  const Array b = uniform(shape, 24, -2, 2);
  Check bernoulli_check = pair_check("binary_cross_entropy", binary_cross_entropy, bernoulli, uniform(shape, 25, -6, 6),
                                     uniform(shape, 26, 0, 1));
  bernoulli_check.arithmetic = 4e-6;  // an exponential and a logarithm
  return {pair_check("mse_loss", mse_loss, squared, a, b),
          pair_check(
              "l1_loss", l1_loss, [](double x, double y) { return std::abs(x - y); }, a, b),
          pair_check("huber_loss", huber_of, huber, a, b), std::move(bernoulli_check)};
}

}  // namespace

TEST_CASE("losses of two tensors, and their gradients for both") {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{5, 7}, Shape{2, 3, 4}, Shape{9001, 3}}) {
    CAPTURE(to_string(shape));
    for (const Check& check : pair_checks(shape)) {
      testing::check_operator(check);
      if (elements(shape) < 100) testing::check_gradient(check);
    }
  }
}

TEST_CASE("binary cross-entropy neither overflows nor loses what is small") {
  const Array logits({6}, {60000, 60000, -60000, -60000, 0, 0});
  const Array targets({6}, {1, 0, 1, 0, 1, 0.5});
  testing::check_operator(pair_check("binary_cross_entropy", binary_cross_entropy, bernoulli, logits, targets));
  testing::check_gradient(pair_check("binary_cross_entropy", binary_cross_entropy, bernoulli, logits, targets));
  for (const double certain : {5, 8, 12, 15}) {
    Check check = pair_check("binary_cross_entropy", binary_cross_entropy, bernoulli,
                             Array({3}, {certain, -certain, certain}), Array({3}, {1, 0, 1}));
    testing::check_operator(check);
  }
}

TEST_CASE("a number that is none makes a loss of two tensors NaN") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (Check check : pair_checks({6})) {
    for (Operand& operand : check.inputs) {
      const double kept = std::exchange(operand.values.values[4], nan);
      check.reference = [=](std::span<const Array>) { return Array({}, {nan}); };
      testing::check_operator(check);
      operand.values.values[4] = kept;
    }
  }
}

TEST_CASE("the slope of the absolute error at 0 is 0") {
  Check check = pair_check(
      "l1_loss", l1_loss, [](double, double) { return 0.0; }, Array({5}, 0.25), Array({5}, 0.25));
  testing::check_gradient(check);
}

TEST_CASE("losses of an f16 prediction and an f32 target, and the prediction's gradient in f16") {
  for (const Check& check : pair_checks({3, 5})) {
    CAPTURE(check.name);
    Graph graph;
    const std::array<Tensor, 2> inputs{graph.input("a", {3, 5}, DType::f16), graph.input("b", {3, 5}, DType::f32)};
    const Tensor seed = graph.input("seed", {});
    std::array<Array, 2> values{testing::rounded(check.inputs[0].values, DType::f16),
                                testing::rounded(check.inputs[1].values, DType::f32)};
    const Tensor loss = check.build(inputs);
    const graph::ValueId wanted[] = {inputs[0].id()};
    const graph::ValueId gradient = passes::add_backward(graph::ir_of(loss), loss.id(), seed.id(), wanted).front();
    step::Execution execution(testing::context(), graph.ir(), {loss.id(), gradient});
    for (std::size_t i = 0; i < 2; ++i) {
      execution.set(inputs[i].id(), std::vector<float>(values[i].values.begin(), values[i].values.end()));
    }
    execution.set(seed.id(), std::vector<float>{1});
    execution.run();
    CHECK(execution.floats(loss.id()).front() ==
          doctest::Approx(check.reference(values).values.front()).epsilon(check.arithmetic));
    REQUIRE(graph.ir().values[gradient].type == TensorType{DType::f16, {3, 5}});
    constexpr double h = 1e-5;
    double& x = values[0].values[7];
    x += h;
    const double above = check.reference(values).values.front();
    x -= 2 * h;
    const double below = check.reference(values).values.front();
    CHECK(execution.floats(gradient)[7] == doctest::Approx((above - below) / (2 * h)).epsilon(0x1p-10));
  }
}
