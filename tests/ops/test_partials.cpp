#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include "graph/ir.h"
#include "harness/device.h"
#include "ops/conv2d.h"
#include "step/execution.h"

using namespace halfstep;

namespace {

/// One operator's first result, with accumulators in f16 or f32, for a target.
float result(Tensor output, const std::vector<std::pair<Tensor, std::vector<float>>>& inputs, bool float16_partials,
             const plan::Target& target) {
  step::ExecutionOptions options;
  options.lowering.float16_partials = float16_partials;
  options.target = target;
  options.pipelines = testing::pipelines();
  step::Execution execution(testing::context(), output.ir(), {output.id()}, options);
  for (const auto& [tensor, values] : inputs) execution.set(tensor.id(), values);
  execution.run();
  return execution.floats(output.id()).front();
}

/// The sum 2048 + 1 + 1 + 1, each term the sum of sixteen products: 2051 in f32; in f16, where 2049 lies halfway
/// between two numbers and the even one is 2048, it stays there.
std::vector<float> terms(std::int64_t copies) {
  std::vector<float> values;
  for (int k = 0; k < 64; ++k) {
    for (std::int64_t i = 0; i < copies; ++i) values.push_back(k < 16 ? 128.0F : 0.0625F);
  }
  return values;
}

void check_partials(Tensor output, const std::vector<std::pair<Tensor, std::vector<float>>>& inputs) {
  for (const plan::Target& target : testing::targets()) {
    CHECK(result(output, inputs, false, target) == 2051);
    CHECK(result(output, inputs, true, target) == 2048);
  }
}

std::vector<float> ones(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), 1.0F);
}

}  // namespace

TEST_CASE("matmul can accumulate in f16, sixteen products at a time") {
  Graph graph;
  const Tensor a = graph.input("a", {3, 64});
  const Tensor b = graph.input("b", {64, 2});
  check_partials(matmul(a, b), {{a, ones(3 * 64)}, {b, terms(2)}});
}

TEST_CASE("conv2d can accumulate in f16") {
  Graph graph;
  const Tensor images = graph.input("images", {1, 2, 2, 64});
  const Tensor weight = graph.input("weight", {1, 1, 64, 2});
  check_partials(conv2d(images, weight, {.stride = {2, 2}}), {{images, ones(4 * 64)}, {weight, terms(2)}});
}

TEST_CASE("weight gradients can accumulate in f16") {
  Graph graph;
  const Tensor images = graph.input("images", {4, 1, 16, 1});
  const Tensor cotangent = graph.input("cotangent", {4, 1, 16, 2});
  const Tensor gradient = ops::conv2d_weight_gradient(images, cotangent, {1, 1, 1, 2}, {});
  check_partials(gradient, {{images, ones(64)}, {cotangent, terms(2)}});
}

TEST_CASE("convolutions in odd groups can accumulate in f16, a tap at a time") {
  Graph graph;
  const Tensor images = graph.input("images", {1, 1, 4, 32});
  const Tensor weight = graph.input("weight", {1, 4, 16, 2});
  std::vector<float> values;
  for (int i = 0; i < 4 * 16 * 2; ++i) values.push_back(i < 32 ? 128.0F : 0.0625F);
  check_partials(conv2d(images, weight, {.groups = 2}), {{images, ones(4 * 32)}, {weight, values}});
}
