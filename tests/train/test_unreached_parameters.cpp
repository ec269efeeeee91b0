#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

constexpr float start = 0.7F;  // not representable in f16

/// "used" {3, 2} has a gradient of `pull`; "idle/weight" {5} is read only by a metric, "idle/bias" {4} by nothing, and
/// "kept" {2} is also trained.
Trainer make(TrainerOptions options, std::vector<std::string>* lines = nullptr) {
  Graph graph;
  const Tensor pull = graph.input("pull", {1});
  const Scope idle = graph.root() / "idle";
  const Tensor weight = idle.parameter("weight", {5}, constant(start));
  const Tensor used = graph.root().parameter("used", {3, 2}, constant(start));
  idle.parameter("bias", {4}, constant(start));
  const Tensor kept = graph.root().parameter("kept", {2}, constant(start));
  options.loss = add(sum(mul(used, pull)), sum(mul(kept, pull)));
  options.metrics["size"] = sum(weight);
  if (lines != nullptr) options.log = [=](const std::string& line) { lines->push_back(line); };
  return Trainer::compile(testing::device(), graph, options);
}

void step(Trainer& trainer, float pull) {
  trainer.step({{"pull", std::span<const float>(&pull, 1)}});
  trainer.finish();
}

const std::vector<Optimizer> optimizers{
    Sgd{.rate = 0.1F, .weight_decay = 0.5F}, Sgd{.rate = 0.1F, .momentum = 0.9F, .weight_decay = 0.5F},
    Adam{.rate = 0.1F, .weight_decay = 0.5F}, AdamW{.rate = 0.1F, .weight_decay = 0.5F}};

}  // namespace

TEST_CASE("parameters that the loss does not depend on stay as they are, decay or not, and are named") {
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    for (const Optimizer& optimizer : optimizers) {
      CAPTURE(precision.name);
      CAPTURE(optimizer->name());
      TrainerOptions options;
      options.precision = precision;
      options.precision.loss_scale = LossScale::none();
      options.optimizer = optimizer;
      options.ema_decay = 0.5F;
      std::vector<std::string> lines;
      Trainer trainer = make(options, &lines);
      REQUIRE(!lines.empty());
      CHECK(std::ranges::count(lines,
                               "not trained, since the loss does not depend on them: 'idle/weight', 'idle/bias'") == 1);
      for (int i = 0; i < 3; ++i) step(trainer, 1);
      CHECK(trainer.parameter("idle/weight") == std::vector<float>(5, start));
      CHECK(trainer.parameter("idle/bias") == std::vector<float>(4, start));
      CHECK(trainer.parameter("idle/bias", Weights::averaged) == std::vector<float>(4, start));
      CHECK(trainer.parameter("used")[5] < start - 0.1F);
      CHECK(trainer.parameter("kept")[1] < start - 0.1F);
      CHECK(trainer.report().metrics.at("size") == doctest::Approx(5 * start).epsilon(1e-3));
      CHECK(trainer.inspect().summary().parameters == 8);
    }
  }
}

TEST_CASE("they are in checkpoints, and are loaded from them") {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "checkpoint";
  for (const Optimizer& optimizer : optimizers) {
    CAPTURE(optimizer->name());
    TrainerOptions options;
    options.optimizer = optimizer;
    options.ema_decay = 0.5F;
    Trainer trainer = make(options);
    const std::vector<float> values{1.1F, 2.2F, 3.3F, 4.4F, 5.5F};
    trainer.set_parameter("idle/weight", values);
    step(trainer, 1);
    trainer.save(path);
    step(trainer, -2);
    Trainer other = make(options);
    other.load(path);
    CHECK(other.parameter("idle/weight") == values);
    CHECK(other.parameter("idle/bias") == std::vector<float>(4, start));
    step(other, -2);
    CHECK(other.parameter("used") == trainer.parameter("used"));
    CHECK(other.parameter("kept", Weights::averaged) == trainer.parameter("kept", Weights::averaged));
    other.save_weights(path);
    CHECK(make(options).load_weights(path).loaded.size() == 4);
  }
}

TEST_CASE("frozen parameters beside them stay too, with gradients of scales of their own") {
  TrainerOptions options;
  options.precision = Precision::mixed();
  options.precision.gradient_scales = GradientScales::per_tensor;
  options.precision.loss_scale = LossScale::none();
  options.groups = {{.pattern = "kept", .frozen = true}};
  std::vector<std::string> lines;
  Trainer trainer = make(options, &lines);
  step(trainer, 1);
  CHECK(lines.back().find("'idle/weight', 'idle/bias'") != std::string::npos);
  CHECK(lines.back().find("'kept'") == std::string::npos);
  CHECK(trainer.parameter("idle/weight") == std::vector<float>(5, start));
  CHECK(trainer.parameter("used")[0] < start);
  options.groups = {{.pattern = "idle/*", .frozen = true}};
  lines.clear();
  make(options, &lines);
  for (const std::string& line : lines) CHECK(line.find("not trained") == std::string::npos);
}

TEST_CASE("batch norm beside the loss keeps its running statistics up to date, and is evaluated with them") {
  Graph graph;
  const Tensor samples = graph.input("samples", {8, 5});
  const Tensor labels = graph.input("labels", {8}, DType::u32);
  const Scope norm = graph.root() / "norm";
  const RunningStatistics running{norm.state("mean", {5}, constant(0)), norm.state("variance", {5}, constant(1))};
  const Tensor normed = batch_norm(samples, norm.parameter("weight", {5}, constant(2)),
                                   norm.parameter("bias", {5}, constant(3)), running);
  const Tensor w = graph.root().parameter("w", {5, 3}, normal(0.1F));
  const Dataset set = testing::toy_dataset(16, {5}, 3);
  TrainerOptions options;
  options.loss = cross_entropy(matmul(samples, w), labels);
  options.metrics["size"] = mean(normed);
  options.precision = Precision::float32();
  options.feed = Feed{.samples = samples, .labels = labels};
  options.training_set = &set;
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  for (int i = 0; i < 60; ++i) trainer.step();
  trainer.finish();
  CHECK(trainer.report().metrics.at("size") == doctest::Approx(3).epsilon(1e-4));
  CHECK(trainer.parameter("norm/mean")[0] > 0.2F);
  CHECK(trainer.parameter("norm/weight") == std::vector<float>(5, 2));
  CHECK(trainer.evaluate(set).metrics.at("size") == doctest::Approx(3).epsilon(0.1));
}

TEST_CASE("a loss that depends on no parameter to train is an error") {
  Graph graph;
  const Tensor x = graph.input("x", {3});
  const Tensor w = graph.root().parameter("w", {3}, constant(1));
  graph.root().parameter("idle", {3}, constant(1));
  TrainerOptions options;
  options.loss = sum(x);
  const char* const message = "[trainer] expected a loss that depends on a parameter to train, got one on none";
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), graph, options), message, Error);
  options.loss = sum(mul(w, x));
  options.groups = {{.pattern = "w", .frozen = true}};
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), graph, options), message, Error);
  options.groups.push_back({.pattern = "idle", .frozen = true});
  CHECK_THROWS_WITH_AS(Trainer::compile(testing::device(), graph, options), doctest::Contains("frozen ones only"),
                       Error);
}

TEST_CASE("a scalar parameter may be the loss itself") {
  Graph graph;
  TrainerOptions options;
  options.loss = graph.root().parameter("w", {}, constant(1));
  options.optimizer = Sgd{.rate = 0.25F};
  options.precision = Precision::float32();
  Trainer trainer = Trainer::compile(testing::device(), graph, options);
  trainer.step(std::map<std::string, Values>{});
  CHECK(trainer.parameter("w") == std::vector<float>{0.75F});
  // There is nothing that steps could be given.
  trainer.step();
  CHECK(trainer.parameter("w") == std::vector<float>{0.5F});
  while (!trainer.run_for(std::chrono::seconds(1))) continue;
  CHECK(trainer.parameter("w") == std::vector<float>{0.25F});
}

}  // namespace halfstep
