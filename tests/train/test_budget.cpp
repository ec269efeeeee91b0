// Steps that are submitted in parts, within a budget of the device's time.
#include <halfstep/error.h>

#include <doctest/doctest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "harness/device.h"
#include "harness/faults.h"
#include "train/small_training.h"

using namespace halfstep;
using std::chrono::microseconds;

namespace {

Trainer toy(const Dataset& set, const testing::ToyOptions& options = {}) {
  return testing::toy_trainer(set, options);
}

/// How many calls it took to submit so many steps to their end.
int run_steps(Trainer& trainer, int steps, std::chrono::nanoseconds budget) {
  int calls = 0;
  for (int ended = 0; ended < steps; ++calls) ended += trainer.run_for(budget) ? 1 : 0;
  return calls;
}

/// The bias of the dense layer, as a predictor over the trainer's weights finds it.
std::vector<float> predicted_bias(const Trainer& trainer) {
  Graph graph;
  const Tensor bias = (graph.root() / "dense").parameter("bias", {5}, constant(0));
  return Predictor::compile(trainer, graph, scale(bias, 2)).run({});
}

}  // namespace

TEST_CASE("steps within a budget train to the same bits as whole steps") {
  const Dataset set = testing::toy_dataset(96, {20, 18, 3}, 5);
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    const testing::ToyOptions options{.batch = 16, .precision = precision, .dropout = 0.25F, .change = [](auto& all) {
                                        all.accumulate = 2;
                                        all.clip_norm = 0.5F;
                                        all.ema_decay = 0.9F;
                                      }};
    Trainer whole = toy(set, options);
    for (int i = 0; i < 5; ++i) whole.step();
    whole.finish();
    Trainer cut = toy(set, options);
    CHECK(run_steps(cut, 5, microseconds(20)) > 20);
    CHECK(testing::toy_weights(cut) == testing::toy_weights(whole));
    CHECK(cut.report().loss == whole.report().loss);
    CHECK(cut.report().step == 5);
  }
}

TEST_CASE("a step of any length fits into an ample budget") {
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  Trainer trainer = toy(set);
  run_steps(trainer, 4, std::chrono::seconds(10));  // measured
  trainer.finish();
  CHECK(trainer.run_for(std::chrono::seconds(10)));
}

TEST_CASE("a budget cuts its own steps alone") {
  const Dataset set = testing::toy_dataset(96, {20, 18, 3}, 5);
  // However slow a driver is, a whole step is one submit.
  const Device device = Device::open(testing::device().info().name, {.submit_milliseconds = 1e6, .may_fork = false});
  Trainer trainer = toy(set, {.batch = 16, .device = device});
  const auto submits_of_step = [&] {
    trainer.step();
    return trainer.inspect().host_costs().submits;
  };
  CHECK(submits_of_step() == 1);
  CHECK(run_steps(trainer, 3, microseconds(20)) > 3);
  CHECK(trainer.inspect().host_costs().submits > 1);
  for (int i = 0; i < 2; ++i) CHECK(submits_of_step() == 1);  // in each of the two slots
  CHECK(!trainer.run_for(microseconds(1)));
  CHECK(submits_of_step() == 1);
}

TEST_CASE("what needs the weights ends a step that a budget left open") {
  const Dataset set = testing::toy_dataset(96, {20, 18, 3}, 5);
  Trainer whole = toy(set, {.batch = 16});
  Trainer cut = toy(set, {.batch = 16});
  const auto both = [&](auto&& check) {
    whole.step();
    CHECK(!cut.run_for(microseconds(1)));
    check();
    CHECK(testing::toy_weights(cut) == testing::toy_weights(whole));
  };
  both([&] { CHECK(cut.evaluate(set).loss == whole.evaluate(set).loss); });
  both([&] {
    whole.step();
    cut.step();
  });
  both([&] { CHECK(predicted_bias(cut) == predicted_bias(whole)); });
  both([&] { CHECK(cut.inspect().host_costs().steps + 1 == whole.inspect().host_costs().steps); });
  CHECK(cut.inspect().host_costs().steps == whole.inspect().host_costs().steps);
}

TEST_CASE("a budget that an open step has does not survive its trainer") {
  const Dataset set = testing::toy_dataset(96, {20, 18, 3}, 5);
  Trainer trainer = toy(set, {.batch = 16});
  CHECK(!trainer.run_for(microseconds(1)));
  trainer = toy(set, {.batch = 16});
  CHECK(!trainer.run_for(microseconds(1)));
}

TEST_CASE("a predictor that outlives its trainer has the weights of whole steps") {
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  const testing::ToyOptions options{
      .change = [](TrainerOptions& made) { made.groups = {{.pattern = "conv/*", .rate = 0.5F}}; }};
  // Of each group's update a parameter.
  const auto predictor = [](const Trainer& trainer) {
    Graph graph;
    const Tensor first = (graph.root() / "conv").parameter("bias", {6}, constant(0));
    const Tensor last = (graph.root() / "dense").parameter("bias", {3}, constant(0));
    return Predictor::compile(trainer, graph, concat({first, last}, 0));
  };
  Trainer whole = toy(set, options);
  const std::vector<float> before = predictor(whole).run({});
  whole.step();
  const std::vector<float> after = predictor(whole).run({});
  REQUIRE(before != after);
  bool ended = false;
  for (int calls = 1; !ended; ++calls) {
    CAPTURE(calls);
    std::optional<Trainer> cut = toy(set, options);
    Predictor predicted = predictor(*cut);
    for (int i = 0; i < calls && !ended; ++i) {
      ended = cut->run_for(microseconds(1));
      std::this_thread::sleep_for(microseconds(300));  // until the device has done that, so that the next call submits
    }
    cut.reset();
    CHECK(predicted.run({}) == after);
  }
}

TEST_CASE("a budget is positive, and takes a training set or source") {
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  Trainer trainer = toy(set);
  CHECK_THROWS_WITH_AS(trainer.run_for(microseconds(0)), doctest::Contains("expected a positive budget, got 0 ns"),
                       Error);
  testing::Pull pull(3, 1, Adam{}, Precision::float32());
  CHECK_THROWS_AS(pull.trainer().run_for(microseconds(1)), Error);
}

TEST_CASE("a step that could not be cut anew is recorded before it is submitted") {
  const Dataset set = testing::toy_dataset(40, {6, 5, 1}, 3);
  Trainer whole = toy(set, {.batch = 16});
  for (int i = 0; i < 6; ++i) whole.step();
  for (const char* function : {"vkCreateCommandPool", "vkBeginCommandBuffer", "vkEndCommandBuffer"}) {
    CAPTURE(function);
    testing::FaultyVulkan vulkan;
    const Device device = Device::open(testing::device().info().name, {.tuning = Tuning::off, .may_fork = false});
    Trainer trainer = toy(set, {.batch = 16, .device = device});
    for (int i = 0; i < 3; ++i) trainer.step();
    trainer.finish();
    vulkan.plan(testing::Fault{function, 1, VK_ERROR_OUT_OF_HOST_MEMORY});
    CHECK_THROWS_WITH_AS(trainer.run_for(microseconds(1)), doctest::Contains("VK_ERROR_OUT_OF_HOST_MEMORY"), Error);
    for (int i = 0; i < 3; ++i) trainer.step();
    CHECK(testing::toy_weights(trainer) == testing::toy_weights(whole));
  }
}
