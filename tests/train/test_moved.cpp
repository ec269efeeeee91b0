// Whatever holds a device or a model throws Error where it was moved from.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <chrono>
#include <utility>

#include "harness/device.h"
#include "harness/errors.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::error_of;

// NOLINTBEGIN(bugprone-use-after-move): that is what these tests are about

TEST_CASE("moved: a trainer that was moved from says so, and the other goes on") {
  const std::string text = "[trainer] expected a trainer that holds a model, got one that was moved from";
  Trainer from = testing::toy_trainer(testing::toy_set(), {});
  testing::run(from, 2);
  Inspector inspector = from.inspect();
  Checkpoint checkpoint = from.checkpoint();
  Trainer to = std::move(from);
  CHECK(error_of([&] { from.step(); }) == text);
  CHECK(error_of([&] { from.run_for(std::chrono::seconds(1)); }) == text);
  CHECK(error_of([&] { from.report(); }) == text);
  CHECK(error_of([&] { from.finish(); }) == text);
  CHECK(error_of([&] { from.load(checkpoint); }) == text);
  CHECK(error_of([&] { from.reopen(testing::device()); }) == text);
  CHECK(error_of([&] { static_cast<void>(from.inspect()); }) == text);
  CHECK(inspector.host_costs().steps == 2);
  testing::run(to, 1);
  CHECK(to.report().step == 3);
  from = std::move(to);
  CHECK(error_of([&] { to.step(); }) == text);
  testing::run(from, 1);
  CHECK(from.report().step == 4);

  const Checkpoint kept = std::move(checkpoint);
  const std::string snapshot = "[checkpoint] expected a snapshot, got one that was moved from";
  CHECK(error_of([&] { checkpoint.write("never.safetensors"); }) == snapshot);
  CHECK(error_of([&] { from.load(checkpoint); }) == snapshot);
  CHECK(from.load(kept).step == 2);
}

TEST_CASE("moved: a predictor that was moved from says so, and the other goes on") {
  const std::string text = "[predictor] expected a predictor that holds a model, got one that was moved from";
  Graph graph;
  const Tensor x = graph.input("x", {2});
  Predictor from = Predictor::compile(testing::device(), graph, relu(x));
  Predictor to = std::move(from);
  const std::vector<float> values{-1, 2};
  const std::map<std::string, Values> inputs{{"x", values}};
  CHECK(error_of([&] { from.run(inputs); }) == text);
  CHECK(error_of([&] { from.submit(inputs); }) == text);
  CHECK(error_of([&] { from.record(&graph); }) == text);
  CHECK(error_of([&] { from.load_weights("none"); }) == text);
  CHECK(error_of([&] { static_cast<void>(Predictor::compile(from, graph, relu(x))); }) == text);
  CHECK(to.run(inputs) == std::vector<float>{0, 2});
}

TEST_CASE("moved: a device that was moved from says so, and the other goes on") {
  const std::string text = "[device] expected an open device, got one that was moved from";
  Device from = testing::device();
  const Device to = std::move(from);
  CHECK(error_of([&] { static_cast<void>(from.info()); }) == text);
  CHECK(error_of([&] { from.wait_for({}); }) == text);
  CHECK(error_of([&] { from.signal({}); }) == text);
  Graph graph;
  const Tensor x = graph.input("x", {2});
  CHECK(error_of([&] { static_cast<void>(Predictor::compile(from, graph, relu(x))); }) == text);
  CHECK(to.info().name == testing::device().info().name);
}

// NOLINTEND(bugprone-use-after-move)

}  // namespace
}  // namespace halfstep
