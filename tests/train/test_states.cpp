#include <halfstep/graph.h>
#include <halfstep/ops.h>

#include <doctest/doctest.h>

#include <limits>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

/// Batch norm of x {4, 3}, with a gradient of `pull` for every element of its bias.
Trainer pulled_norm(const Precision& precision) {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  const Tensor pull = graph.input("pull", {3});
  const Tensor y = models::batch_norm(graph.root() / "bn", x, {.momentum = 0.5F});
  return Trainer::compile(testing::device(), graph,
                          {.loss = sum(mul(y, pull)), .optimizer = Sgd{.rate = 0.25F}, .precision = precision});
}

void step(Trainer& trainer, float x, float pull) {
  // Each channel holds x - 1, x, x, x + 1: mean x, unbiased variance 2/3.
  std::vector<float> values;
  for (const float offset : {-1.0F, 0.0F, 0.0F, 1.0F}) values.insert(values.end(), 3, x + offset);
  const std::vector<float> pulls(3, pull);
  trainer.step({{"x", std::span<const float>(values)}, {"pull", std::span<const float>(pulls)}});
  trainer.finish();
}

Trainer norm_trainer(const Dataset& set, const Precision& precision, std::uint64_t seed) {
  Graph graph;
  const Tensor images = graph.input("images", {8, 6, 5, 1});
  const Tensor labels = graph.input("labels", {8}, DType::u32);
  const Tensor conv = models::same_conv(graph.root() / "conv", images, 6, 3, models::Bias::none);
  const Tensor hidden = relu(models::batch_norm(graph.root() / "bn", conv));
  const Tensor logits = models::dense(graph.root() / "dense", global_average_pool(hidden), set.classes);
  return Trainer::compile(testing::device(), graph,
                          {.loss = cross_entropy(logits, labels),
                           .metrics = {{"accuracy", accuracy(logits, labels)}},
                           .optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F},
                           .precision = precision,
                           .seed = seed,
                           .feed = Feed{.samples = images, .labels = labels},
                           .training_set = &set});
}

std::vector<float> everything(Trainer& trainer) {
  const std::string names[] = {"conv/weight",    "bn/weight",    "bn/bias",   "bn/running_mean",
                               "bn/running_var", "dense/weight", "dense/bias"};
  return testing::all_weights(trainer, names);
}

}  // namespace

TEST_CASE("running statistics move with every update, and stay where a step is skipped") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    precision.loss_scale = LossScale::fixed(16);
    Trainer trainer = pulled_norm(precision);
    step(trainer, 2, 1);
    CHECK(trainer.parameter("bn/running_mean") == std::vector<float>(3, 1));
    CHECK(trainer.parameter("bn/running_var")[1] == doctest::Approx(0.5 + 1.0 / 3));
    step(trainer, 100, std::numeric_limits<float>::infinity());
    CHECK(trainer.report().overflowed);
    CHECK(trainer.parameter("bn/running_mean") == std::vector<float>(3, 1));
    step(trainer, 3, 1);
    CHECK(trainer.parameter("bn/running_mean") == std::vector<float>(3, 2));
    CHECK(trainer.parameter("bn/bias") == std::vector<float>(3, -2));
  }
}

TEST_CASE("evaluation takes the running statistics, so that a sample's loss does not depend on the others") {
  const Dataset set = testing::toy_dataset(64, {6, 5, 1}, 3);
  Trainer trainer = norm_trainer(set, Precision::float32(), 1);
  for (int i = 0; i < 20; ++i) trainer.step();
  double total = 0;
  for (std::int64_t i = 0; i < 16; ++i) {
    Dataset one = set;
    one.count = 1;
    one.samples.assign(set.samples.begin() + 30 * i, set.samples.begin() + 30 * (i + 1));
    one.labels = {set.labels[static_cast<std::size_t>(i)]};
    total += trainer.evaluate(one).loss / 16;
  }
  CHECK(trainer.evaluate(set.take(16)).loss == doctest::Approx(total).epsilon(1e-5));
}

TEST_CASE("running statistics are saved, and a resumed run ends on the same bits") {
  const TemporaryFolder folder;
  const Dataset set = testing::toy_dataset(50, {6, 5, 1}, 3);
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    Trainer whole = norm_trainer(set, precision, 1);
    for (int i = 0; i < 20; ++i) whole.step();
    Trainer first = norm_trainer(set, precision, 1);
    for (int i = 0; i < 9; ++i) first.step();
    first.save(folder.path() / "checkpoint");
    Trainer second = norm_trainer(set, precision, 2);
    second.load(folder.path() / "checkpoint");
    for (int i = 0; i < 11; ++i) second.step();
    CHECK(everything(second) == everything(whole));
    CHECK(second.evaluate(set).loss == whole.evaluate(set).loss);
  }
}

TEST_CASE("any state may be updated, once, by a tensor of its type") {
  Graph graph;
  const Tensor w = graph.root().parameter("w", {5}, constant(1));
  const Tensor sum_of_w = graph.root().state("sum", {5}, constant(10));
  const Tensor still = graph.root().state("still", {3}, constant(7));
  update(sum_of_w, add(cast(w, DType::f32), sum_of_w));
  CHECK_THROWS_WITH_AS(update(sum_of_w, sum_of_w), doctest::Contains("a second"), Error);
  CHECK_THROWS_WITH_AS(update(w, w), doctest::Contains("expected a state"), Error);
  CHECK_THROWS_WITH_AS(update(still, w), doctest::Contains("f32 {3}"), Error);
  for (const std::int64_t micro_batches : {1, 2, 3}) {
    Trainer trainer = Trainer::compile(
        testing::device(), graph,
        {.loss = sum(w), .optimizer = Sgd{.rate = 1}, .accumulate = micro_batches, .precision = Precision::float32()});
    for (int i = 0; i < 2; ++i) trainer.step(std::map<std::string, Values>{});
    // Every micro-batch adds the weight of its step, 1 and then 0.
    CHECK(trainer.parameter("sum") == std::vector<float>(5, 10 + static_cast<float>(micro_batches)));
    CHECK(trainer.parameter("still") == std::vector<float>(3, 7));
  }
}

TEST_CASE("a state counts in f32 in every precision") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 6});
  const Tensor w = graph.root().parameter("w", {6}, constant(1));
  const Tensor seen = graph.root().state("seen", {6}, constant(4096));  // f16 has every fourth number from there on
  update(seen, add(seen, sum(x, {0})));
  const std::vector<float> values(24, 0.25F);
  for (Precision precision :
       {Precision::float32(), Precision::autocast(), Precision::mixed(), Precision::float16(), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    precision.loss_scale = LossScale::none();
    Trainer trainer = Trainer::compile(testing::device(), graph, {.loss = sum(mul(x, w)), .precision = precision});
    for (int i = 0; i < 3; ++i) trainer.step({{"x", values}});
    CHECK(trainer.parameter("seen") == std::vector<float>(6, 4099));
  }
}

TEST_CASE("an average of many steps moves in every precision") {
  Graph graph;
  const Tensor x = graph.input("x", {4, 6});
  const Tensor w = graph.root().parameter("w", {6}, constant(1));
  const Tensor mean_of_x = graph.root().state("mean", {6}, constant(1));
  update(mean_of_x, add(scale(mean_of_x, 1 - 0x1p-13F), scale(mean(x, {0}), 0x1p-13F)));
  const std::vector<float> values(24, 2);
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16(), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    precision.loss_scale = LossScale::none();
    Trainer trainer = Trainer::compile(testing::device(), graph, {.loss = sum(mul(x, w)), .precision = precision});
    for (int i = 0; i < 2; ++i) trainer.step({{"x", values}});
    for (const float average : trainer.parameter("mean")) CHECK(average == doctest::Approx(1 + 0x1p-12).epsilon(1e-6));
  }
}

}  // namespace halfstep
