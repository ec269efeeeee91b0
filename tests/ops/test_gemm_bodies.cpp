// Every body of the matrix product, whichever the rule prefers.
#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <map>

#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "ops/conv2d.h"
#include "ops/gemm_bodies.h"
#include "reference/conv2d.h"
#include "reference/matmul.h"
#include "reference/sum.h"

using namespace halfstep;
using testing::Check;
using testing::uniform;

namespace {

/// Each body that this device has, as a target that is to use it.
std::vector<plan::Target> targets() {
  std::map<std::string, plan::Target> found;
  for (plan::Target target : testing::targets()) {
    for (const ops::Body& body : ops::bodies(target, {.dtype = DType::f16})) {
      target.gemm_bodies = body.name;
      found.emplace(body.name, target);
    }
  }
  std::vector<plan::Target> all;
  for (auto& [name, target] : found) all.push_back(std::move(target));
  return all;
}

/// Over the edges of every tile, and of a step along k.
const Shape a_shape{131, 67};
const Shape b_shape{67, 134};

Shape turned(const Shape& shape, bool turn) {
  return turn ? Shape{shape[1], shape[0]} : shape;
}

constexpr double arithmetic = 3e-5;

}  // namespace

TEST_CASE("every body computes matrix products") {
  for (const MatmulOptions& options : {MatmulOptions{}, {false, true}, {true, false}, {true, true}}) {
    testing::check_operator(
        {.name = "matmul",
         .build = [=](std::span<const Tensor> x) { return matmul(x[0], x[1], options); },
         .inputs = {{uniform(turned(a_shape, options.transpose_a), 1)},
                    {uniform(turned(b_shape, options.transpose_b), 2)}},
         .reference = [=](std::span<const reference::Array> x) { return reference::matmul(x[0], x[1], options); },
         .arithmetic = arithmetic,
         .targets = targets()});
  }
}

TEST_CASE("every body computes convolutions and their gradients") {
  const Shape images{2, 9, 11, 6};
  const Shape weight{3, 2, 6, 70};
  const Conv2dOptions options{.stride = {1, 2}, .padding = {1, 1}};
  const Shape output = ops::Convolution{images, weight, options}.output("test");
  testing::check_operator(
      {.name = "conv2d",
       .build = [=](std::span<const Tensor> x) { return conv2d(x[0], x[1], options); },
       .inputs = {{uniform(images, 1)}, {uniform(weight, 2)}},
       .reference = [=](std::span<const reference::Array> x) { return reference::conv2d(x[0], x[1], options); },
       .arithmetic = arithmetic,
       .targets = targets()});
  testing::check_operator(
      {.name = "data gradient",
       .build = [=](std::span<const Tensor> x) { return ops::conv2d_data_gradient(x[0], x[1], images, options); },
       .inputs = {{uniform(output, 1)}, {uniform(weight, 2)}},
       .reference =
           [=](std::span<const reference::Array> x) {
             return reference::conv2d_data_gradient(x[0], x[1], images, options);
           },
       .arithmetic = arithmetic,
       .targets = targets()});
  testing::check_operator(
      {.name = "weight gradient",
       .build = [=](std::span<const Tensor> x) { return ops::conv2d_weight_gradient(x[0], x[1], weight, options); },
       .inputs = {{uniform(images, 1)}, {uniform(output, 2)}},
       .reference =
           [=](std::span<const reference::Array> x) {
             return reference::conv2d_weight_gradient(x[0], x[1], weight, options);
           },
       .arithmetic = arithmetic,
       .targets = targets()});
}

TEST_CASE("every body sums the columns of a weight gradient's cotangent on its way") {
  const Shape images{2, 9, 11, 6};
  for (const Shape& weight : {Shape{3, 2, 6, 70}, Shape{1, 1, 6, 37}}) {  // patches, and plain rows
    const Shape output = ops::Convolution{images, weight, {}}.output("test");
    for (const std::size_t result : {0U, 1U}) {
      testing::check_operator({.name = "gradients of weight and bias",
                               .build =
                                   [=](std::span<const Tensor> x) {
                                     return ops::conv2d_parameter_gradients(x[0], x[1], weight, {})[result];
                                   },
                               .inputs = {{uniform(images, 1)}, {uniform(output, 2)}},
                               .reference =
                                   [=](std::span<const reference::Array> x) {
                                     return result == 0 ? reference::conv2d_weight_gradient(x[0], x[1], weight, {})
                                                        : reference::sum(x[1], {0, 1, 2}, false);
                                   },
                               .arithmetic = arithmetic,
                               .targets = targets()});
    }
  }
}

TEST_CASE("a body that the device does not have is refused") {
  plan::Target target = testing::context().target();
  target.gemm_bodies = "tile3";
  CHECK(ops::bodies(target, {}).size() == 1);
  target.gemm_bodies = "fastest";
  CHECK_THROWS_WITH_AS(ops::bodies(target, {}),
                       doctest::Contains("[gemm] expected HALFSTEP_GEMM to begin the name of a body, got fastest"),
                       Error);
}
