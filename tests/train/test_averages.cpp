#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/layers.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::run;

Trainer averaging(float decay, testing::ToyOptions options = {}, std::vector<ParameterGroup> groups = {}) {
  options.change = [=](TrainerOptions& made) {
    made.ema_decay = decay;
    made.groups = groups;
  };
  return testing::toy_trainer(testing::toy_set(), options);
}

std::vector<float> averages(Trainer& trainer) {
  std::vector<float> all;
  for (const char* name : {"conv/weight", "conv/bias", "dense/weight", "dense/bias"}) {
    const std::vector<float> values = trainer.parameter(name, Weights::averaged);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

TEST_CASE("averages follow the weights as they do in double, and stay where a step is skipped") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16(1), Precision::bfloat16(),
                              Precision::bfloat16(DType::bf16)}) {
    for (const float decay : {0.5F, 0.99F}) {
      CAPTURE(precision.name);
      if (precision.name == "mixed") precision.loss_scale = LossScale::fixed(64);
      testing::Pull pull(7, 1, Sgd{.rate = 0.01F, .momentum = 0.9F}, precision, 5,
                         [=](TrainerOptions& options) { options.ema_decay = decay; });
      Trainer& trainer = pull.trainer();
      CHECK(trainer.parameter("w", Weights::averaged) == std::vector<float>(7, 1));
      double expected = 1;
      for (int i = 0; i < 20; ++i) {
        pull.step(i % 3 == 0 ? -0.5F : 1.25F);
        const auto weight = static_cast<double>(pull.weights()[6]);
        expected = static_cast<double>(decay) * expected + (1 - static_cast<double>(decay)) * weight;
        CHECK(trainer.parameter("w", Weights::averaged)[6] == doctest::Approx(expected).epsilon(2e-6));
      }
      const std::vector<float> before = trainer.parameter("w", Weights::averaged);
      CHECK(before != pull.weights());
      pull.step(std::numeric_limits<float>::infinity());
      CHECK(trainer.parameter("w", Weights::averaged) == before);
    }
  }
}

TEST_CASE("evaluation takes the averages by choice, as a model that was loaded with them") {
  const TemporaryFolder folder;
  const Dataset test = testing::toy_dataset(37, {6, 5, 1}, 3, 2);
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    Trainer trainer = averaging(0.9F, {.precision = precision});
    CHECK(trainer.evaluate(test, Weights::averaged).loss == trainer.evaluate(test).loss);
    run(trainer, 20);
    const double loss = trainer.evaluate(test, Weights::averaged).loss;
    CHECK(loss != trainer.evaluate(test).loss);
    trainer.save_weights(folder.path() / "averages", Weights::averaged);
    CHECK(io::SafetensorsFile(folder.path() / "averages").find("dense.weight")->dtype == "F32");
    Trainer other = averaging(0.9F, {.precision = precision});
    run(other, 3);
    other.load_weights(folder.path() / "averages");
    CHECK(other.evaluate(test).loss == loss);
    CHECK(other.evaluate(test, Weights::averaged).loss == loss);
  }
}

TEST_CASE("predictors take the averages by choice, as a model that was loaded with them") {
  const TemporaryFolder folder;
  Graph graph;
  const Tensor images = graph.input("images", {2, 6, 5, 1});
  const Tensor hidden = relu(models::same_conv(graph.root() / "conv", images, 6, 3));
  const Tensor logits = models::dense(graph.root() / "dense", flatten(max_pool2d(hidden)), 3);
  std::vector<float> values;
  for (int i = 0; i < 60; ++i) values.push_back(0.03F * static_cast<float>(i * 37 % 60) - 0.9F);
  const std::map<std::string, Values> inputs{{"images", std::span<const float>(values)}};
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    Trainer trainer = averaging(0.9F, {.precision = precision});
    Predictor averaged = Predictor::compile(trainer, graph, logits, {}, Weights::averaged);
    Predictor of_that = Predictor::compile(averaged, graph, logits);
    run(trainer, 20);
    trainer.save_weights(folder.path() / "averages", Weights::averaged);
    Trainer other = averaging(0.9F, {.precision = precision});
    other.load_weights(folder.path() / "averages");
    const std::vector<float> expected = Predictor::compile(other, graph, logits).run(inputs);
    CHECK(averaged.run(inputs) == expected);
    CHECK(of_that.run(inputs) == expected);
    CHECK(Predictor::compile(trainer, graph, logits).run(inputs) != expected);
  }
  Trainer without = averaging(0);
  CHECK_THROWS_WITH_AS(Predictor::compile(without, graph, logits, {}, Weights::averaged),
                       doctest::Contains("ema_decay"), Error);
}

TEST_CASE("weights that a file does not have keep their averages") {
  const TemporaryFolder folder;
  const std::vector<float> bias{1, 2, 3};
  io::write_safetensors(folder.path() / "bias", {{"dense.bias", "F32", {3}, std::as_bytes(std::span(bias))}}, {});
  Trainer trainer = averaging(0.9F);
  run(trainer, 5);
  const std::vector<float> before = trainer.parameter("conv/weight", Weights::averaged);
  REQUIRE(before != trainer.parameter("conv/weight"));
  trainer.load_weights(folder.path() / "bias", {.strict = false});
  CHECK(trainer.parameter("conv/weight", Weights::averaged) == before);
  CHECK(trainer.parameter("dense/bias", Weights::averaged) == bias);
}

TEST_CASE("averages do not change the training, are saved under their own names, and resume to the same bits") {
  const TemporaryFolder folder;
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    Trainer plain = testing::toy_trainer(testing::toy_set(), {.precision = precision});
    Trainer whole = averaging(0.95F, {.precision = precision});
    run(plain, 30);
    run(whole, 30);
    CHECK(testing::toy_weights(whole) == testing::toy_weights(plain));
    Trainer first = averaging(0.95F, {.precision = precision});
    run(first, 13);
    first.save(folder.path() / "checkpoint");
    const io::SafetensorsFile file(folder.path() / "checkpoint");
    REQUIRE(file.find("conv.weight.average") != nullptr);
    CHECK(file.find("conv.weight.average")->dtype == "F32");
    CHECK(file.find("conv.weight.average")->shape == Shape{6, 1, 3, 3});
    Trainer second = averaging(0.95F, {.precision = precision});
    second.load(folder.path() / "checkpoint");
    run(second, 17);
    CHECK(averages(second) == averages(whole));
    CHECK(testing::toy_weights(second) == testing::toy_weights(whole));
    CHECK_THROWS_WITH_AS(plain.load(folder.path() / "checkpoint"), doctest::Contains("conv.weight.average"), Error);
    plain.load_weights(folder.path() / "checkpoint");
    CHECK(testing::toy_weights(plain) == testing::toy_weights(first));
  }
}

TEST_CASE("the plan has the averages' bytes, and frozen parameters have none") {
  const std::vector<ParameterGroup> frozen{{.pattern = "conv/*", .frozen = true}};
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    Trainer trainer = averaging(0.9F, {.precision = precision});
    Trainer part = averaging(0.9F, {.precision = precision}, frozen);
    const std::uint64_t elements = trainer.inspect().summary().gradient_bytes / (precision.name == "mixed" ? 2 : 4);
    const std::uint64_t bytes = trainer.inspect().summary().average_bytes;
    CHECK(bytes == elements * (precision.name == "mixed" ? 6 : 4));
    CHECK(trainer.inspect().plan().find(std::to_string(bytes) + " bytes of averages of weights") != std::string::npos);
    CHECK(part.inspect().summary().average_bytes < bytes);
    run(part, 2);
    CHECK(part.parameter("conv/weight", Weights::averaged) == part.parameter("conv/weight"));
    CHECK(part.parameter("dense/weight", Weights::averaged) != part.parameter("dense/weight"));
    CHECK(std::isfinite(part.evaluate(testing::toy_set(), Weights::averaged).loss));
    Trainer without = averaging(0, {.precision = precision});
    CHECK(without.inspect().summary().average_bytes == 0);
    CHECK(without.inspect().plan().find("averages") == std::string::npos);
  }
}

TEST_CASE("averages that cannot be are refused") {
  for (const float decay : {-0.5F, 1.0F, std::nanf("")}) {
    CHECK_THROWS_WITH_AS(averaging(decay), doctest::Contains("ema_decay to be in [0, 1)"), Error);
  }
  Trainer trainer = averaging(0);
  CHECK_THROWS_WITH_AS(trainer.evaluate(testing::toy_set(), Weights::averaged), doctest::Contains("ema_decay"), Error);
  CHECK_THROWS_WITH_AS(trainer.parameter("conv/bias", Weights::averaged), doctest::Contains("ema_decay"), Error);
  CHECK_THROWS_WITH_AS(trainer.save_weights("/nowhere", Weights::averaged), doctest::Contains("ema_decay"), Error);
}

}  // namespace halfstep
