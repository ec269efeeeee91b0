#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "harness/check.h"
#include "harness/device.h"
#include "harness/values.h"
#include "plan/layout.h"
#include "plan/program.h"
#include "reference/narrow.h"
#include "step/execution.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using reference::Array;

/// The first dropout of a graph, in the step and with the seed of checks: both 0.
Array dropout_of(const Array& x, double probability) {
  const plan::Layout lay = plan::layout(x.shape);
  Array result = x;
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(i) / lay.columns;
    const auto column = static_cast<std::int64_t>(i) % lay.columns;
    const auto quad = static_cast<std::uint32_t>(row * lay.quads_per_row() + column / 4);
    const auto words = process::philox4x32({quad, plan::noise_stream("dropout 0"), 0, 0}, process::philox_key(0));
    const bool dropped = words[static_cast<std::size_t>(column % 4)] < probability * 0x1p32;
    result.values[i] = dropped ? 0 : x.values[i] / (1 - probability);
  }
  return result;
}

/// The result of dropout on {997, 3} ones.
std::vector<float> dropped_ones(float probability, std::uint64_t seed, std::uint64_t step, DType dtype = DType::f32) {
  Graph graph;
  const Tensor ones = graph.input("ones", {997, 3}, dtype);
  const Tensor result = dropout(ones, probability);
  step::ExecutionOptions options;
  options.seed = seed;
  options.step = step;
  step::Execution execution(testing::context(), graph.ir(), {result.id()}, options);
  execution.set(ones.id(), std::vector<float>(997 * 3, 1.0F));
  execution.run();
  return execution.floats(result.id());
}

double zeros(const std::vector<float>& values) {
  return static_cast<double>(std::ranges::count(values, 0.0F));
}

/// Number of positions at which both have a zero.
double common_zeros(const std::vector<float>& a, const std::vector<float>& b) {
  double count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) count += a[i] == 0 && b[i] == 0 ? 1 : 0;
  return count;
}

/// Whether `count` is within four standard deviations of the mean of `trials` trials with probability p.
bool likely(double count, double trials, double p) {
  return std::abs(count - trials * p) < 4 * std::sqrt(trials * p * (1 - p));
}

}  // namespace

TEST_CASE("dropout, and its gradient with the same elements dropped, as the counter-based noise has it") {
  for (const Shape& shape : {Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{13, 1}, Shape{1031}}) {
    for (const float probability : {0.1F, 0.5F, 0.9F}) {
      CAPTURE(to_string(shape));
      const testing::Check check{
          .name = "dropout",
          .build = [=](std::span<const Tensor> x) { return dropout(x[0], probability); },
          .inputs = {{testing::uniform(shape, 1, -3, 3)}},
          .reference = [=](std::span<const Array> x) { return dropout_of(x[0], static_cast<double>(probability)); }};
      testing::check_operator(check);
      if (elements(shape) < 100) testing::check_gradient(check);
    }
  }
}

TEST_CASE("dropout drops as often as it is asked to, and keeps the mean") {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const float probability : {0.01F, 0.25F, 0.5F, 0.9F}) {
      CAPTURE(probability);
      const std::vector<float> values = dropped_ones(probability, 7, 3, dtype);
      CHECK(likely(zeros(values), static_cast<double>(values.size()), static_cast<double>(probability)));
      const auto kept = std::ranges::find_if(values, [](float v) { return v != 0; });
      CHECK(*kept ==
            doctest::Approx(1 / (1 - probability)).epsilon(is_narrow(dtype) ? reference::narrow(dtype).unit() : 1e-6));
      CHECK(std::ranges::all_of(values, [&](float v) { return v == 0 || v == *kept; }));
    }
  }
}

TEST_CASE("dropout draws anew for every step, seed and place in a graph, and the same for the same") {
  const std::vector<float> first = dropped_ones(0.5F, 7, 3);
  CHECK(dropped_ones(0.5F, 7, 3) == first);
  for (const std::vector<float>& other :
       {dropped_ones(0.5F, 7, 4), dropped_ones(0.5F, 8, 3), dropped_ones(0.5F, 7, (std::uint64_t{1} << 32) + 3)}) {
    CHECK(likely(common_zeros(first, other), static_cast<double>(first.size()), 0.25));
  }
  Graph graph;
  const Tensor ones = graph.input("ones", {997, 3});
  const Tensor a = dropout(ones, 0.5F);
  const Tensor b = dropout(ones, 0.5F);
  step::Execution execution(testing::context(), graph.ir(), {a.id(), b.id()});
  execution.set(ones.id(), std::vector<float>(997 * 3, 1.0F));
  execution.run();
  CHECK(likely(common_zeros(execution.floats(a.id()), execution.floats(b.id())), 997 * 3, 0.25));
}

TEST_CASE("dropout draws anew in every run of a graph within a step") {
  Graph graph;
  const Tensor x = graph.input("x", {3, 5});
  dropout(x, 0.5F);
  plan::ProgramBuilder builder{plan::Target{}};
  builder.stores().key_noise(builder.place_bytes("state", 64, {builder.buffer("state"), 0}));
  builder.values().bind(x.id(), builder.tensor("x", x.type()));
  builder.lower(graph.ir(), graph.ir().nodes[0]);
  builder.values().repeat(graph.ir());
  builder.lower(graph.ir(), graph.ir().nodes[0]);
  const plan::Program program = builder.finish();
  REQUIRE(program.dispatches.size() == 2);
  CHECK(program.dispatches[0].push != program.dispatches[1].push);
}

TEST_CASE("evaluation drops nothing") {
  const Dataset set = testing::toy_dataset(50, {6, 5, 1}, 3);
  Trainer with = testing::toy_trainer(set, {.dropout = 0.5F});
  Trainer without = testing::toy_trainer(set, {});
  const Evaluation wanted = without.evaluate(set);
  CHECK(with.evaluate(set).loss == wanted.loss);
  with.step();
  without.step();
  with.finish();
  without.finish();
  CHECK(with.report().loss != without.report().loss);
}

}  // namespace halfstep
