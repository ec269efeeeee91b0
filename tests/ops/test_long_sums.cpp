// Sums of many equal terms. Were they added up one after the other, each addition would be rounded to the unit of the
// sum so far, in the same direction, and half a million terms of 0.3 would be off by 5e-3. Of 8,192 they are by 8e-5.
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "harness/device.h"
#include "ops/conv/conv2d.h"
#include "passes/backward.h"
#include "plan/layout.h"
#include "step/execution.h"

using namespace halfstep;

namespace {

constexpr float number = 0.3F;

struct Case {
  std::string name;
  std::vector<Shape> inputs;  ///< each filled with `number`
  std::function<Tensor(std::span<const Tensor>)> build;
  double terms = 0;   ///< of each sum
  double factor = 1;  ///< `number` that a term is a product of, besides one
};

/// The furthest that a result is from the true sum, as a share of that.
double furthest(const Case& test, plan::Target target) {
  Graph graph = testing::settled_graph();
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < test.inputs.size(); ++i) {
    inputs.push_back(graph.input("x" + std::to_string(i), test.inputs[i]));
  }
  const std::vector<graph::ValueId> wanted{test.build(inputs).id()};
  target.wanted_groups = 1;  // sums are not cut up to occupy the device
  step::ExecutionOptions options;
  options.target = target;
  step::Execution execution(testing::context(), graph.ir(), wanted, options);
  for (const Tensor& input : inputs) {
    execution.set(input.id(), std::vector<float>(static_cast<std::size_t>(elements(input.shape())), number));
  }
  execution.run();
  const double expected = test.terms * static_cast<double>(number) * test.factor;
  double result = 0;
  for (const float v : execution.floats(wanted.front())) {
    result = std::max(result, std::abs(static_cast<double>(v) / expected - 1));
  }
  return result;
}

void check(const Case& test) {
  std::uint64_t quads = 0;
  for (const Shape& shape : test.inputs) quads += static_cast<std::uint64_t>(plan::layout(shape).quads());
  if (!testing::device_takes(quads / 64, 16 * quads)) return;
  for (const plan::Target& target : testing::targets()) {
    INFO(test.name << (target.cpu ? ", for a CPU" : ", for a GPU"));
    CHECK(furthest(test, target) < 1e-4);
  }
}

constexpr std::int64_t many = 1 << 19;

Case weight_gradient(const std::string& name, const Shape& images, const Shape& weight, std::int64_t groups) {
  const Conv2dOptions options{.groups = groups};
  const Shape output = ops::Convolution{images, weight, options}.output("test");
  return {
      .name = name,
      .inputs = {images, output},
      .build =
          [=](std::span<const Tensor> x) { return ops::conv2d_parameter_gradients(x[0], x[1], weight, options)[0]; },
      .terms = static_cast<double>(output[0] * output[1] * output[2]),
      .factor = static_cast<double>(number)};
}

}  // namespace

TEST_CASE("long sums: products of many equal terms") {
  for (const MatmulOptions& options : {MatmulOptions{}, {false, true}, {true, false}, {true, true}}) {
    check({.name = "matmul " + std::to_string(options.transpose_a) + std::to_string(options.transpose_b),
           .inputs = {options.transpose_a ? Shape{many, 16} : Shape{16, many},
                      options.transpose_b ? Shape{16, many} : Shape{many, 16}},
           .build = [=](std::span<const Tensor> x) { return matmul(x[0], x[1], options); },
           .terms = static_cast<double>(many),
           .factor = static_cast<double>(number)});
  }
}

TEST_CASE("long sums: gradients of the weights of convolutions") {
  check(weight_gradient("convolution", {2048, 16, 16, 8}, {1, 1, 8, 8}, 1));
  check(weight_gradient("groups off quads", {2048, 16, 16, 6}, {1, 1, 3, 6}, 2));
  check(weight_gradient("depthwise", {2048, 16, 16, 32}, {1, 1, 1, 32}, 32));
  check(weight_gradient("groups off quads, one line", {1, 1, many, 6}, {1, 1, 3, 6}, 2));
  check(weight_gradient("depthwise, one line", {1, 1, many, 8}, {1, 1, 1, 8}, 8));
}

TEST_CASE("long sums: convolutions of channels by themselves with many taps") {
  check({.name = "depthwise, long kernel",
         .inputs = {{1, 1, many, 8}, {1, many, 1, 8}},
         .build = [](std::span<const Tensor> x) { return conv2d(x[0], x[1], {.groups = 8}); },
         .terms = static_cast<double>(many),
         .factor = static_cast<double>(number)});
  constexpr std::int64_t taps = 45'000;  // of each position all but one are over the padding
  check({.name = "depthwise, long kernel, data gradient",
         .inputs = {{1, 1, taps, 8}, {1, taps, 1, 8}},
         .build =
             [](std::span<const Tensor> x) {
               return ops::conv2d_data_gradient(x[0], x[1], {1, 1, 1, 8}, {.padding = {0, taps - 1}, .groups = 8});
             },
         .terms = static_cast<double>(taps),
         .factor = static_cast<double>(number)});
}

TEST_CASE("long sums: averages of long rows and columns") {
  if (testing::context().target().max_rounds < 65535) return;  // a device that is told to end loops sooner
  for (const Shape& images : {Shape{1, 1, 50000, 4}, Shape{1, 21000, 1, 4}}) {
    check({.name = "average pooling",
           .inputs = {images},
           .build =
               [](std::span<const Tensor> x) {
                 return adaptive_average_pool2d(x[0], {1, 1});
               },
           .terms = 1});
  }
}

TEST_CASE("long sums: gradients of pixels under many windows") {
  if (testing::context().target().max_rounds < 65535) return;  // a device that is told to end loops sooner
  check({.name = "average pooling",
         .inputs = {{1, 1, 1, 4}, {1, 1, 50000, 4}, {}},
         .build =
             [](std::span<const Tensor> x) {
               const Tensor loss = sum(mul(adaptive_average_pool2d(x[0], {1, 50000}), x[1]));
               graph::Ir& ir = graph::ir_of(loss);
               const graph::ValueId wanted = x[0].id();
               return ir.tensor(passes::add_backward(ir, loss.id(), x[2].id(), std::span(&wanted, 1)).front());
             },
         .terms = 50000,
         .factor = static_cast<double>(number)});
}

TEST_CASE("long sums: small networks of many inputs") {
  check({.name = "fused_mlp",
         .inputs = {{4, many / 16}, {many / 16, 16}, {16, 4}},
         .build =
             [](std::span<const Tensor> x) {
               return fused_mlp(x[0], std::vector<DenseLayer>{{x[1], {}}, {x[2], {}}}, {});
             },
         .terms = static_cast<double>(many / 16),
         .factor = 16 * static_cast<double>(number) * static_cast<double>(number)});
}

TEST_CASE("long sums: statistics of groups of many channels") {
  if (testing::context().target().max_rounds < 65535) return;  // a device that is told to end loops sooner
  constexpr std::int64_t channels = 20000;
  check({.name = "group norm",
         .inputs = {{1, channels}, {channels + 1}, {channels + 1}},
         // What is summed are differences from the first channel, which is 0.
         .build =
             [](std::span<const Tensor> x) {
               const Tensor all = pad(x[0], {0, 1}, {0, 0});
               return slice(group_norm(all, 1, x[1], x[2], 0.01F), {0, 1}, {1, channels + 1});
             },
         .terms = 1,
         .factor = 1.00015});
}

TEST_CASE("long sums: gradients of the parameters of norms") {
  check({.name = "group norm",
         .inputs = {{1, 256, 192, 512}, {512}, {512}, {}},
         .build =
             [](std::span<const Tensor> x) {
               const Tensor loss = sum(group_norm(x[0], 128, x[1], x[2]));
               graph::Ir& ir = graph::ir_of(loss);
               const graph::ValueId wanted = x[2].id();
               return ir.tensor(passes::add_backward(ir, loss.id(), x[3].id(), std::span(&wanted, 1)).front());
             },
         .terms = 256 * 192});
}
