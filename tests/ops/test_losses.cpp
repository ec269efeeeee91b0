#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "reference/losses.h"
#include "step/execution.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;
using testing::whole;

namespace {

/// Few and many rows, few and many classes: one workgroup and several, one invocation a row and several.
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

/// Every third row is left out.
Array with_ignored(Array labels) {
  for (std::size_t i = 0; i < labels.values.size(); i += 3) labels.values[i] = ignored_label;
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

TEST_CASE("the first of equal logits is the prediction") {
  testing::check_operator(accuracy_check(whole({211, 7}, 21, 3), labels_for({211, 7})));
  testing::check_operator(accuracy_check(whole({37, 301}, 22, 3), labels_for({37, 301})));
}

TEST_CASE("mean squared error") {
  for (const Shape& shape : {Shape{}, Shape{3}, Shape{5, 7}, Shape{2, 3, 4}, Shape{9001, 3}}) {
    CAPTURE(to_string(shape));
    Check check{.name = "mse_loss",
                .build = [](std::span<const Tensor> x) { return mse_loss(x[0], x[1]); },
                .inputs = {{uniform(shape, 23)}, {uniform(shape, 24)}},
                .reference = [](std::span<const Array> x) { return reference::mse_loss(x[0], x[1]); },
                .arithmetic = 4e-6};
    testing::check_operator(check);
    if (elements(shape) < 100) testing::check_gradient(check);
  }
}

TEST_CASE("mean squared error of an f16 prediction and an f32 target") {
  Graph graph;
  const Tensor prediction = graph.input("prediction", {3, 5}, DType::f16);
  const Tensor target = graph.input("target", {3, 5}, DType::f32);
  const Tensor loss = mse_loss(prediction, target);
  const Array a = testing::rounded(uniform({3, 5}, 25), DType::f16);
  const Array b = testing::rounded(uniform({3, 5}, 26), DType::f32);
  step::Execution execution(testing::context(), graph.ir(), {loss.id()});
  execution.set(prediction.id(), std::vector<float>(a.values.begin(), a.values.end()));
  execution.set(target.id(), std::vector<float>(b.values.begin(), b.values.end()));
  execution.run();
  CHECK(execution.floats(loss.id()).front() == doctest::Approx(reference::mse_loss(a, b).values.front()).epsilon(1e-6));
}
