#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "ops/conv/conv2d.h"
#include "reference/conv2d.h"
#include "reference/norm.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

constexpr float epsilon = 1e-3F;

Check check_of(const Shape& shape, std::int64_t groups) {
  const Shape channels{shape.back()};
  return {.name = "group_norm " + to_string(shape),
          .build =
              [=](std::span<const Tensor> x) {
                return groups == shape.back() ? instance_norm(x[0], x[1], x[2], epsilon)
                                              : group_norm(x[0], groups, x[1], x[2], epsilon);
              },
          .inputs = {{uniform(shape, 1, -2, 2)}, {uniform(channels, 2, 0.5, 2)}, {uniform(channels, 3)}},
          .reference =
              [=](std::span<const Array> x) {
                return reference::group_norm(x[0], groups, x[1], x[2], static_cast<double>(epsilon));
              },
          .arithmetic = 5e-6};
}

}  // namespace

TEST_CASE("group and instance norm") {
  testing::check_operator(check_of({3, 5, 4, 8}, 2));
  testing::check_operator(check_of({2, 7, 6}, 3));
  testing::check_operator(check_of({2, 3, 3, 7}, 1));
  testing::check_operator(check_of({2, 5, 3, 7}, 7));
  testing::check_operator(check_of({1, 67, 61, 12}, 4));
  testing::check_operator(check_of({5, 12}, 3));  // no pixels: statistics over channels alone
  testing::check_operator(check_of({4, 7}, 1));
  testing::check_operator(check_of({3, 5}, 5));
}

TEST_CASE("the mean of a group of equal numbers is that number") {
  for (const std::int64_t groups : {1, 2, 7}) {
    Check check = check_of({2, 4, 4, 28}, groups);
    for (double& v : check.inputs[0].values.values) v = static_cast<double>(4000.3F);
    check.dtypes = {DType::f32};
    testing::check_operator(check);  // the bias, where a sum of the means is off by as much as 0.07
  }
}

TEST_CASE("gradient of group and instance norm") {
  for (Check check : {check_of({3, 3, 2, 8}, 2), check_of({2, 4, 6}, 3), check_of({2, 3, 2, 7}, 1),
                      check_of({2, 3, 3, 5}, 5), check_of({5, 12}, 3), check_of({4, 7}, 1)}) {
    check.magnitude = 4;
    testing::check_gradient(check);
  }
}

TEST_CASE("a norm of the gradient of a weight whose channels are no whole quads") {
  const Shape weight{1, 3, 3, 8};  // the product that computes it has four rows for each three
  testing::check_operator(
      {.name = "group_norm of a weight's gradient",
       .build =
           [=](std::span<const Tensor> x) {
             return group_norm(ops::conv2d_weight_gradient(x[0], x[1], weight, {}), 1, x[2], x[3], epsilon);
           },
       .inputs =
           {{uniform({2, 7, 6, 3}, 1, 1, 2)}, {uniform({2, 7, 4, 8}, 2)}, {uniform({8}, 3, 0.5, 2)}, {uniform({8}, 4)}},
       .reference =
           [=](std::span<const Array> x) {
             return reference::group_norm(reference::conv2d_weight_gradient(x[0], x[1], weight, {}), 1, x[2], x[3],
                                          static_cast<double>(epsilon));
           },
       .arithmetic = 1e-4,
       .dtypes = {DType::f32},
       .targets = testing::product_targets()});
}

TEST_CASE("group norm says what it cannot take") {
  Graph graph;
  const Tensor x = graph.input("x", {2, 3, 3, 6});
  const Tensor six = graph.input("six", {6});
  const Tensor five = graph.input("five", {5});
  CHECK_THROWS_WITH_AS(group_norm(x, 4, six, six), doctest::Contains("divide 6 channels"), Error);
  CHECK_THROWS_WITH_AS(group_norm(x, 0, six, six), doctest::Contains("divide 6 channels"), Error);
  CHECK_THROWS_WITH_AS(group_norm(x, 2, five, six), doctest::Contains("weight and bias f32 {6}"), Error);
  CHECK_THROWS_WITH_AS(group_norm(x, 2, six, six, 0), doctest::Contains("epsilon"), Error);
  CHECK_THROWS_WITH_AS(group_norm(six, 2, six, six), doctest::Contains("{n, ..., c}"), Error);
}
