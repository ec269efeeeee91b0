#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::run;

/// A trainer with micro-batches of `batch` samples.
Trainer accumulating(std::int64_t micro_batches, std::int64_t batch, testing::ToyOptions options) {
  options.batch = batch;
  options.change = [=](TrainerOptions& made) { made.accumulate = micro_batches; };
  return testing::toy_trainer(testing::toy_set(), options);
}

/// The distance between two vectors, relative to the length of their path from a third.
double apart(const std::vector<float>& a, const std::vector<float>& b, const std::vector<float>& start) {
  double difference = 0;
  double way = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    way += std::pow(static_cast<double>(a[i]) - static_cast<double>(start[i]), 2);
  }
  return std::sqrt(difference / way);
}

/// Five weights of 1, with a gradient set for each micro-batch of a step.
testing::Pull pulled(const Precision& precision, std::int64_t micro_batches) {
  const auto change = [=](TrainerOptions& options) { options.accumulate = micro_batches; };
  return {5, 1, Sgd{.rate = 0.25F, .momentum = 0.5F}, precision, 5, change};
}

/// Batch norm of x {4, 3}, with a given gradient for its bias.
Trainer norm_trainer(std::int64_t micro_batches) {
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  const Tensor pull = graph.input("pull", {3});
  const Tensor y = models::batch_norm(graph.root() / "bn", x, {.momentum = 0.5F});
  return Trainer::compile(testing::device(), graph,
                          {.loss = sum(mul(y, pull)), .accumulate = micro_batches, .precision = Precision::float32()});
}

/// One step whose micro-batches have these means and gradients.
void norm_step(Trainer& trainer, const std::vector<float>& means, const std::vector<float>& pulls) {
  std::vector<float> x;
  std::vector<float> pull;
  for (const float mean : means) {
    for (const float offset : {-1.0F, 0.0F, 0.0F, 1.0F}) x.insert(x.end(), 3, mean + offset);
  }
  for (const float value : pulls) pull.insert(pull.end(), 3, value);
  trainer.step({{"x", std::span<const float>(x)}, {"pull", std::span<const float>(pull)}});
  trainer.finish();
}

}  // namespace

TEST_CASE("micro-batches train as one batch of all their samples") {
  for (Precision precision : {Precision::float32(), Precision::mixed()}) {
    for (const std::uint64_t resident_limit : {0U, 1U}) {
      CAPTURE(precision.name);
      precision.loss_scale = precision.name == "mixed" ? LossScale::fixed(256) : LossScale::none();
      const testing::ToyOptions options{.optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F},
                                        .precision = precision,
                                        .resident_limit = resident_limit,
                                        .augmentation = {.crop_padding = 1, .flip = 0.5F, .brightness = 0.3F}};
      Trainer whole = accumulating(1, 24, options);
      const std::vector<float> start = testing::toy_weights(whole);
      run(whole, 12);
      const double mean_loss = whole.take_totals().mean_loss;
      for (const std::int64_t micro_batches : {2, 3, 8}) {
        Trainer parts = accumulating(micro_batches, 24 / micro_batches, options);
        run(parts, 12);
        // f16: gradients and activations are rounded as other sums, by 2^-11 each.
        const double tolerance = precision.name == "mixed" ? 4e-3 : 4e-6;
        CHECK(apart(testing::toy_weights(parts), testing::toy_weights(whole), start) < tolerance);
        CHECK(parts.report().loss == doctest::Approx(whole.report().loss).epsilon(tolerance));
        CHECK(parts.report().metrics.at("accuracy") == doctest::Approx(whole.report().metrics.at("accuracy")));
        CHECK(parts.report().applied == 12);
        CHECK(parts.take_totals().mean_loss == doctest::Approx(mean_loss).epsilon(tolerance));
      }
    }
  }
}

TEST_CASE("gradients of micro-batches are summed in f32, and one that overflows skips the update") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16(1), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    if (precision.name == "mixed") precision.loss_scale = LossScale::fixed(1);
    precision.rounding.weights = Rounding::nearest;
    testing::Pull pull = pulled(precision, 3);
    Trainer& trainer = pull.trainer();
    pull.step(std::vector<float>{1, -2, 4});
    CHECK(pull.weights() == std::vector<float>(5, 0.75F));
    CHECK(trainer.report().loss == 5);
    const float infinity = std::numeric_limits<float>::infinity();
    for (const std::vector<float>& bad :
         {std::vector<float>{infinity, 1, 1}, {1, infinity, 1}, {1, 1, std::nanf("")}}) {
      pull.step(bad);
      CHECK(trainer.report().overflowed);
      CHECK(pull.weights() == std::vector<float>(5, 0.75F));
    }
    CHECK(trainer.report().skipped == 3);
    // The sum is beyond f16's range, the mean is not.
    pull.step(std::vector<float>{60000, 60000, 60000});
    CHECK_FALSE(trainer.report().overflowed);
    const double rounding = precision.name == "bfloat16" ? 0x1p-8 : 1e-3;
    CHECK(pull.weights()[4] == doctest::Approx(0.75 - 0.25 * (60000 + 0.5)).epsilon(rounding));
  }
}

TEST_CASE("each micro-batch has noise of its own") {
  Precision precision = Precision::autocast();
  precision.loss_scale = LossScale::none();
  precision.rounding.activations = Rounding::stochastic;
  constexpr std::int64_t count = 4096;
  Graph graph;
  const Tensor pull = graph.input("pull", {count});
  const Tensor w = graph.root().parameter("w", {count}, constant(0));
  Trainer trainer = Trainer::compile(testing::device(), graph,
                                     {.loss = sum(mul(w, cast(cast(pull, DType::f16), DType::f32))),
                                      .optimizer = Sgd{.rate = 1},
                                      .accumulate = 2,
                                      .precision = precision});
  const std::vector<float> pulls(2 * count, 1 + 0x1p-11F);  // half way between two numbers of f16
  trainer.step({{"pull", std::span<const float>(pulls)}});
  const std::vector<float> weights = trainer.parameter("w");
  const auto both = std::ranges::count(weights, -1 - 0x1p-11F);  // one rounded up, the other down: half of them
  CHECK(std::abs(static_cast<double>(both) - 0.5 * count) < 4 * std::sqrt(0.25 * count));
}

TEST_CASE("running statistics move once for each micro-batch, and are committed with the update") {
  Trainer trainer = norm_trainer(3);
  norm_step(trainer, {2, 4, 6}, {1, 1, 1});
  CHECK(trainer.parameter("bn/running_mean") == std::vector<float>(3, 4.25F));  // 1, 2.5, 4.25
  norm_step(trainer, {9, 9, 9}, {1, 1, std::numeric_limits<float>::infinity()});
  CHECK(trainer.report().overflowed);
  CHECK(trainer.parameter("bn/running_mean") == std::vector<float>(3, 4.25F));
  norm_step(trainer, {4.25F, 4.25F, 8.25F}, {1, 1, 1});
  CHECK(trainer.parameter("bn/running_mean") == std::vector<float>(3, 6.25F));
  Trainer two = norm_trainer(2);
  norm_step(two, {2, 4}, {1, 1});
  CHECK(two.parameter("bn/running_mean") == std::vector<float>(3, 2.5F));
}

TEST_CASE("a run in micro-batches that was stopped and resumed ends on the same bits") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    if (precision.parameters == DType::f16) {
      precision.rounding.activations = Rounding::stochastic;
      precision.rounding.gradients = Rounding::stochastic;
    }
    const testing::ToyOptions options{
        .precision = precision, .augmentation = {.crop_padding = 1, .flip = 0.5F, .cutout = 2}, .dropout = 0.3F};
    Trainer whole = accumulating(3, 8, options);
    Trainer again = accumulating(3, 8, options);
    run(whole, 30);
    run(again, 30);
    CHECK(testing::toy_weights(again) == testing::toy_weights(whole));
    Trainer first = accumulating(3, 8, options);
    run(first, 13);  // in the middle of the second epoch
    first.save(file);
    Trainer second = accumulating(3, 8, options);
    second.load(file);
    run(second, 17);
    CHECK(testing::toy_weights(second) == testing::toy_weights(whole));
  }
}

TEST_CASE("the recorder sees every micro-batch") {
  testing::Pull pull = pulled(Precision::float32(), 2);
  Trainer& trainer = pull.trainer();
  trainer.inspect().watch("w.gradient");
  pull.step(std::vector<float>{3, 5});
  const std::vector<TensorStatistics> records = trainer.inspect().take_records();
  REQUIRE(records.size() == 2);
  CHECK(records[0].micro_batch == 0);
  CHECK(records[0].max == 3);
  CHECK(records[1].micro_batch == 1);
  CHECK(records[1].max == 5);
}

TEST_CASE("micro-batches that cannot be are refused") {
  CHECK_THROWS_WITH_AS(accumulating(0, 8, {}), doctest::Contains("micro-batches to accumulate, got 0"), Error);
  CHECK_THROWS_WITH_AS(accumulating(-3, 8, {}), doctest::Contains("got -3"), Error);
  CHECK_THROWS_WITH_AS(accumulating(30, 8, {}), doctest::Contains("at least one batch of 240, got 203"), Error);
  testing::Pull pull = pulled(Precision::float32(), 2);
  CHECK_THROWS_WITH_AS(pull.step(1), doctest::Contains("expected 2 times 5 values"), Error);
}

}  // namespace halfstep
