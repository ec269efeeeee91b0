#include <halfstep/error.h>
#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/kernel_targets.h"
#include "harness/values.h"
#include "ops/norm/batch_norm.h"
#include "passes/backward.h"
#include "reference/conv2d.h"
#include "reference/matmul.h"
#include "reference/norm.h"
#include "step/execution.h"

using namespace halfstep;
using reference::Array;
using testing::Check;
using testing::uniform;

namespace {

constexpr BatchNormOptions options{.epsilon = 1e-3F, .momentum = 0.25F};

/// Odd and prime extents; one quad of channels and several; rows for one slice, several slices, and two merges.
const std::vector<Shape> shapes{{2, 3}, {5, 4, 3, 7}, {3, 17, 8}, {64, 5, 5, 6}, {2, 96, 96, 3}};

enum Result : std::uint8_t { y, statistics, next_mean, next_variance };

Tensor result_of(std::span<const Tensor> x, Result wanted) {
  const ops::BatchNormResult result = ops::batch_norm_training(x[0], x[1], x[2], {x[3], x[4]}, options);
  const Tensor all[] = {result.y, result.statistics, result.next_mean, result.next_variance};
  return all[wanted];
}

Check check_of(Array x, Result wanted) {
  const Shape channels{x.shape.back()};
  Check check;
  check.name = "batch_norm " + to_string(x.shape);
  check.build = [=](std::span<const Tensor> in) { return result_of(in, wanted); };
  check.inputs = {{std::move(x)},
                  {uniform(channels, 2, 0.5, 2)},
                  {uniform(channels, 3)},
                  {.values = uniform(channels, 4), .kind = testing::Kind::state},
                  {.values = uniform(channels, 5, 0.5, 2), .kind = testing::Kind::state}};
  check.reference = [](std::span<const Array> in) {
    return reference::batch_norm(in[0], in[1], in[2], options.epsilon);
  };
  check.arithmetic = 3e-6;
  return check;
}

/// Batch norm's gradients for x {4, channels}, weight and bias, where every eighth channel is the same.
std::vector<std::vector<float>> gradients_of(std::int64_t channels) {
  Graph graph = testing::settled_graph();
  const std::vector<Shape> shapes_of{{4, channels}, {channels}, {channels}, {channels}, {channels}, {4, channels}, {}};
  std::vector<Tensor> x;
  for (const Shape& shape : shapes_of) x.push_back(graph.input("x" + std::to_string(x.size()), shape));
  const Tensor loss = sum(mul(result_of(x, y), x[5]));
  const std::vector<graph::ValueId> of{x[0].id(), x[1].id(), x[2].id()};
  graph::Ir& ir = graph::ir_of(loss);
  const std::vector<graph::ValueId> wanted = passes::add_backward(ir, loss.id(), x[6].id(), of);
  step::Execution execution(testing::context(), ir, wanted, {});
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Array few = uniform({i == 0 || i == 5 ? 4 : 1, 8}, i + 1, 0.5, 2);
    std::vector<float> values;
    for (std::int64_t at = 0; at < elements(shapes_of[i]); ++at) {
      const std::int64_t row = shapes_of[i].size() == 2 ? at / channels : 0;
      values.push_back(static_cast<float>(few.values[static_cast<std::size_t>(row * 8 + at % 8)]));
    }
    execution.set(x[i].id(), values);
  }
  execution.run();
  std::vector<std::vector<float>> results;
  for (const graph::ValueId id : wanted) results.push_back(execution.floats(id));
  return results;
}

Array moved(const Array& from, const Array& to) {
  Array result = from;
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    result.values[i] += static_cast<double>(options.momentum) * (to.values[i] - from.values[i]);
  }
  return result;
}

/// Batch norm of the result of `build`, for images {2, 5, 4, 6} and more inputs.
Check inference_check(std::vector<testing::Operand> inputs, std::int64_t channels,
                      const std::function<Tensor(std::span<const Tensor>)>& build,
                      const reference::Reference& expected) {
  const std::size_t first = inputs.size();
  Check check;
  check.name = "batch_norm in inference";
  check.inputs = std::move(inputs);
  for (const std::uint64_t seed : {2U, 3U, 4U, 5U}) {
    const bool positive = seed == 2 || seed == 5;
    check.inputs.push_back({.values = uniform({channels}, seed, positive ? 0.5 : -1, positive ? 2 : 1),
                            .kind = seed < 4 ? testing::Kind::floating : testing::Kind::state});
  }
  check.build = [=](std::span<const Tensor> in) {
    const auto norm = in.subspan(first);
    return ops::batch_norm_inference(build(in), norm[0], norm[1], {norm[2], norm[3]}, options.epsilon);
  };
  check.reference = [=](std::span<const Array> in) {
    const auto norm = in.subspan(first);
    return reference::normalise(expected(in), {norm[2], norm[3]}, norm[0], norm[1], options.epsilon);
  };
  check.arithmetic = 1e-5;
  check.roundings = 4;
  return check;
}

}  // namespace

TEST_CASE("batch norm with the statistics of the batch") {
  for (const Shape& shape : shapes) testing::check_operator(check_of(uniform(shape, 1), y));
}

TEST_CASE("batch norm keeps what varies about a mean far from zero") {
  // f16 cannot represent these differences.
  Check check = check_of(uniform({2, 96, 96, 3}, 1, 4000, 4001), y);
  check.dtypes = {DType::f32};
  check.arithmetic = 1e-3;  // half a unit of 4000, in units of the std
  testing::check_operator(check);
  // The mean of a constant is the constant, bit for bit. A sum of the values themselves would be rounded in the same
  // direction at each addition.
  const auto same = static_cast<double>(4000.3F);
  check = check_of(uniform({2, 96, 96, 3}, 1, same, same), y);
  check.dtypes = {DType::f32};
  testing::check_operator(check);
}

TEST_CASE("batch norm of large constants, whose squares would overflow, or whose sums are rounded") {
  // The constants themselves, and as the result of a product, which leaves moments.
  for (const auto& [large, of_product] :
       {std::pair{0x1p67, false}, std::pair{0x1p67, true}, std::pair{static_cast<double>(1000.1F), true}}) {
    const std::int64_t rows = of_product ? 61 : 18432;
    Check check = check_of(uniform({rows, 1, 1, 1}, 1, 1, 1), y);
    check.inputs[0].values = uniform({rows, 1, 1, of_product ? 1 : 37}, 1, large, large);
    for (std::size_t i = 1; i < 5; ++i) check.inputs[i].values = uniform({37}, i, 0.5, 2);
    if (of_product) check.inputs.push_back({uniform({1, 1, 1, 37}, 1, 1, 1)});
    check.build = [=](std::span<const Tensor> in) {
      const Tensor x = of_product ? conv2d(in[0], in[5]) : in[0];
      return ops::batch_norm_training(x, in[1], in[2], {in[3], in[4]}, options).y;
    };
    check.reference = [=](std::span<const Array> in) {
      Array result({rows, 1, 1, 37});
      for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = in[2].values[i % 37];
      return result;
    };
    check.dtypes = {DType::f32};
    if (of_product) check.targets = testing::kernel_targets();
    testing::check_operator(check);
  }
}

TEST_CASE("batch norm of a convolution in groups, and of one by phases, whose products leave no moments") {
  const Conv2dOptions groups{.groups = 2}, stride{.stride = {2, 2}};
  const Shape images{2, 6, 5, 8}, grid{2, 5, 4, 8}, result{2, 11, 9, 8};
  for (const bool of_groups : {true, false}) {
    Check check = check_of(uniform(of_groups ? images : grid, 1), y);
    check.inputs.push_back({uniform(Shape{3, 3, of_groups ? 4 : 8, 8}, 6)});
    check.build = [=](std::span<const Tensor> in) {
      const Tensor x = of_groups ? conv2d(in[0], in[5], groups) : conv2d_transpose(in[0], in[5], stride);
      return ops::batch_norm_training(x, in[1], in[2], {in[3], in[4]}, options).y;
    };
    check.reference = [=](std::span<const Array> in) {
      const Array x = of_groups ? reference::conv2d(in[0], in[5], groups)
                                : reference::conv2d_data_gradient(in[0], in[5], result, stride);
      return reference::batch_norm(x, in[1], in[2], options.epsilon);
    };
    check.arithmetic = 1e-5;
    check.dtypes = {DType::f32};
    testing::check_operator(check);
  }
}

TEST_CASE("the statistics of a batch, and what the running ones become") {
  for (const Shape& shape : shapes) {
    Check check = check_of(uniform(shape, 1), next_mean);
    check.reference = [](std::span<const Array> in) { return moved(in[3], reference::channel_statistics(in[0]).mean); };
    testing::check_operator(check);
    check = check_of(uniform(shape, 1), next_variance);
    check.reference = [](std::span<const Array> in) {
      return moved(in[4], reference::channel_statistics(in[0], true).variance);
    };
    testing::check_operator(check);
  }
}

TEST_CASE("gradient of batch norm") {
  // The last two have channels for whole subgroups, rows in two slices, and rows that are no multiple of four.
  for (const Shape& shape :
       {Shape{3, 3}, Shape{5, 4, 3, 7}, Shape{3, 17, 8}, Shape{7, 43, 5}, Shape{3, 13, 16}, Shape{2, 5, 32}}) {
    Check check = check_of(uniform(shape, 1, -2, 2), y);
    check.magnitude = 4;
    check.targets = testing::product_targets();
    testing::check_gradient(check);
  }
}

// By lanes of 8 they are 75,001 workgroups in two rows, of which the last has no channels.
TEST_CASE("gradients of batch norm over more channels than an axis of the device has workgroups") {
  constexpr std::int64_t channels = 600'008;
  if (!testing::device_takes(channels / 64, 16 * channels)) return;
  const std::vector<std::vector<float>> few = gradients_of(8), many = gradients_of(channels);
  for (std::size_t i = 0; i < few.size(); ++i) {
    std::size_t wrong = 0;
    for (std::size_t at = 0; at < many[i].size(); ++at) {
      const std::size_t row = at / static_cast<std::size_t>(channels);
      if (std::abs(many[i][at] - few[i][8 * row + at % 8]) > 1e-5F) ++wrong;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("in inference batch norm takes the running statistics, by itself or folded into a convolution or product") {
  const auto image = uniform({2, 5, 4, 6}, 1);
  testing::check_operator(inference_check(
      {{image}}, 6, [](std::span<const Tensor> in) { return in[0]; }, [](std::span<const Array> in) { return in[0]; }));
  const Conv2dOptions conv{.stride = {2, 1}, .padding = {1, 1}};
  testing::check_operator(inference_check(
      {{image}, {uniform(Shape{3, 3, 6, 5}, 6)}}, 5,
      [=](std::span<const Tensor> in) { return conv2d(in[0], in[1], conv); },
      [=](std::span<const Array> in) { return reference::conv2d(in[0], in[1], conv); }));
  testing::check_operator(inference_check(
      {{uniform(Shape{7, 6}, 1)}, {uniform(Shape{6, 5}, 6)}, {uniform(Shape{5}, 7)}}, 5,
      [](std::span<const Tensor> in) { return linear(in[0], in[1], in[2]); },
      [](std::span<const Array> in) { return reference::linear(in[0], in[1], in[2]); }));
}

TEST_CASE("batch norm says what it cannot take") {
  Graph graph;
  const auto norm = [&](const Shape& shape, std::int64_t channels, BatchNormOptions with) {
    const std::string name = "bn" + std::to_string(graph.ir().values.size());
    const Scope scope = graph.root() / name;
    return batch_norm(graph.input(name, shape), scope.parameter("weight", {channels}, constant(1)),
                      scope.parameter("bias", {channels}, constant(0)),
                      {scope.state("mean", {channels}, constant(0)), scope.state("var", {channels}, constant(1))},
                      with);
  };
  CHECK(norm({2, 3, 3, 5}, 5, {}).shape() == Shape{2, 3, 3, 5});
  CHECK_THROWS_WITH_AS(norm({5}, 5, {}), doctest::Contains("{n, ..., c}"), Error);
  CHECK_THROWS_WITH_AS(norm({2, 5}, 6, {}), doctest::Contains("weight f32 {5}"), Error);
  CHECK_THROWS_WITH_AS(norm({2, 5}, 5, {.epsilon = 0}), doctest::Contains("epsilon"), Error);
  CHECK_THROWS_WITH_AS(norm({2, 5}, 5, {.momentum = 2}), doctest::Contains("momentum"), Error);
}
