#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <numeric>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

const Dataset& training_set() {
  static const Dataset set = testing::toy_dataset(53, {6, 5, 1}, 3);
  return set;
}

std::vector<float> ramp(std::size_t count, float step) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = step * (static_cast<float>(i % 7) - 3) + 0.01F;
  return values;
}

testing::ToyOptions options_of(const Precision& precision) {
  testing::ToyOptions options{.precision = precision};
  options.change = [](TrainerOptions& made) {
    made.ema_decay = 0.5F;
    made.groups = {{.pattern = "conv/bias", .frozen = true}};
  };
  return options;
}

}  // namespace

TEST_CASE("parameters that are set train on as those loaded from a file do") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "weights";
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    const testing::ToyOptions options = options_of(precision);
    Trainer source = testing::toy_trainer(training_set(), {.precision = precision, .seed = 77});
    for (int i = 0; i < 3; ++i) source.step();
    source.save_weights(path);
    Trainer loaded = testing::toy_trainer(training_set(), options);
    Trainer set = testing::toy_trainer(training_set(), options);
    for (Trainer* trainer : {&loaded, &set}) {
      for (int i = 0; i < 5; ++i) trainer->step();
    }
    loaded.load_weights(path);
    for (const char* name : {"conv/weight", "conv/bias", "dense/weight", "dense/bias"}) {
      set.set_parameter(name, source.parameter(name));
      CHECK(set.parameter(name) == loaded.parameter(name));
      CHECK(set.parameter(name, Weights::averaged) == loaded.parameter(name));
    }
    CHECK(set.evaluate(training_set()).loss == loaded.evaluate(training_set()).loss);
    CHECK(set.evaluate(training_set(), Weights::averaged).loss ==
          loaded.evaluate(training_set(), Weights::averaged).loss);
    for (Trainer* trainer : {&loaded, &set}) {
      for (int i = 0; i < 5; ++i) trainer->step();
      trainer->finish();
    }
    CHECK(testing::toy_weights(set) == testing::toy_weights(loaded));
    CHECK(set.parameter("dense/weight", Weights::averaged) == loaded.parameter("dense/weight", Weights::averaged));
  }
}

TEST_CASE("one parameter that is set leaves the others, and all averages but its own") {
  Trainer trainer = testing::toy_trainer(training_set(), options_of(Precision::mixed()));
  for (int i = 0; i < 5; ++i) trainer.step();
  const std::vector<float> averages = trainer.parameter("conv/weight", Weights::averaged);
  const std::vector<float> conv = trainer.parameter("conv/weight");
  const std::vector<float> bias = trainer.parameter("dense/bias");
  const std::vector<float> values = ramp(108, 0.1F);
  trainer.set_parameter("dense/weight", values);
  CHECK(trainer.parameter("dense/weight") == values);
  CHECK(trainer.parameter("dense/weight", Weights::averaged) == values);
  CHECK(trainer.parameter("conv/weight") == conv);
  CHECK(trainer.parameter("conv/weight", Weights::averaged) == averages);
  CHECK(trainer.parameter("dense/bias") == bias);
}

TEST_CASE("states are set, and stay so until they are updated") {
  for (const std::int64_t micro_batches : {1, 2}) {
    Graph graph;
    const Tensor pull = graph.input("pull", {1});
    const Tensor w = graph.root().parameter("w", {3, 2}, constant(1));
    const Tensor counted = graph.root().state("counted", {3}, constant(1));
    const Tensor still = graph.root().state("still", {3}, constant(5));
    update(counted, scale(counted, 2));
    TrainerOptions options;
    options.loss = mul(sum(mul(w, pull)), mean(mul(still, counted)));
    options.precision = Precision::float32();
    options.accumulate = micro_batches;
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    const std::vector<float> pulls(static_cast<std::size_t>(micro_batches), 1.0F);
    const auto step = [&] { trainer.step({{"pull", std::span<const float>(pulls)}}); };
    step();
    const std::vector<float> values{3, -4, 7};
    trainer.set_parameter("counted", values);
    trainer.set_parameter("still", values);
    CHECK(trainer.parameter("counted") == values);
    step();
    const float factor = micro_batches == 1 ? 2 : 4;
    CHECK(trainer.parameter("counted") == std::vector<float>{3 * factor, -4 * factor, 7 * factor});
    step();
    CHECK(trainer.parameter("still") == values);
  }
}

TEST_CASE("names that are none and values of another number are refused, and change nothing") {
  Trainer trainer = testing::toy_trainer(training_set(), {});
  trainer.step();
  const std::vector<float> before = testing::toy_weights(trainer);
  const std::vector<float> values(108, 1.0F);
  CHECK_THROWS_WITH_AS(trainer.set_parameter("dense", values),
                       doctest::Contains("expected the name of a parameter or state, got 'dense'"), Error);
  CHECK_THROWS_WITH_AS(trainer.set_parameter("dense/weight", std::span(values).first(107)),
                       "[trainer] expected 108 values for 'dense/weight' {36, 3}, got 107", Error);
  CHECK_THROWS_AS(trainer.set_parameter("dense/bias", values), Error);
  CHECK_THROWS_AS(trainer.set_parameter("dense/bias", {}), Error);
  CHECK(testing::toy_weights(trainer) == before);
}

}  // namespace halfstep
