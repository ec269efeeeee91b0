#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

constexpr float limit = 1.25F;

testing::Pull pull(const Precision& precision, float most) {
  return {7, 1, Sgd{.rate = 0.5F}, precision, 5, [=](TrainerOptions& options) {
            options.ema_decay = 0.5F;
            options.weight_limit = most;
          }};
}

}  // namespace

TEST_CASE("weights are limited on both sides after every update, what operators read with them, and then averaged") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16(1), Precision::bfloat16(),
                              Precision::bfloat16(DType::bf16)}) {
    CAPTURE(precision.name);
    if (precision.name == "mixed") precision.loss_scale = LossScale::fixed(64);
    testing::Pull limited = pull(precision, limit);
    float expected = 1;  // every number on the way is exact in every type
    double average = 1;  // and in f32
    for (const float gradient : {-0.25F, -1.0F, 0.5F, 1.0F, 4.0F, 1.0F, -2.0F}) {
      limited.step(gradient);
      CHECK(limited.trainer().report().loss == 7 * gradient * expected);  // of what operators read
      expected = std::clamp(expected - 0.5F * gradient, -limit, limit);
      CHECK(limited.weights() == std::vector<float>(7, expected));
      average = 0.5 * (average + static_cast<double>(expected));
      for (const float w : limited.trainer().parameter("w", Weights::averaged))
        CHECK(static_cast<double>(w) == average);
    }
    CHECK(expected == -0.25F);
    testing::Pull free = pull(precision, 0);
    free.step(-8);
    CHECK(free.weights() == std::vector<float>(7, 5));
  }
}

TEST_CASE("a step that is skipped or stopped limits no weights") {
  const auto start_at_one = [](Precision precision) {
    return testing::Pull(7, 1, Sgd{.rate = 0.5F}, std::move(precision), 5,
                         [=](TrainerOptions& options) { options.weight_limit = 0.5F; });
  };
  for (Precision precision : {Precision::mixed(), Precision::float16(1)}) {
    CAPTURE(precision.name);
    precision.loss_scale = LossScale::dynamic(64);
    testing::Pull skipping = start_at_one(precision);
    skipping.step(1e38F);
    CHECK(skipping.weights() == std::vector<float>(7, 1));
    skipping.step(0.5F);
    CHECK(skipping.weights() == std::vector<float>(7, 0.5F));
  }
  Precision precision = Precision::float32();
  precision.stop_on = {.overflow = true};
  testing::Pull stopping = start_at_one(precision);
  CHECK_THROWS_AS(stopping.step(std::numeric_limits<float>::infinity()), Error);
  CHECK(stopping.weights() == std::vector<float>(7, 1));
}

TEST_CASE("a limit leaves weights that are not numbers") {
  testing::Pull limited = pull(Precision::float32(), limit);
  const std::vector<float> given{std::numeric_limits<float>::quiet_NaN(), 3e38F, -3e38F, 2, -2, 1, -1};
  limited.trainer().set_parameter("w", given);
  limited.step(0);
  const std::vector<float> got = limited.weights();
  CHECK(std::isnan(got[0]));
  const std::vector<float> wanted{limit, -limit, limit, -limit, 1, -1};
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(got[i + 1] == wanted[i]);
}

TEST_CASE("a limit of weights that is negative or not finite is refused") {
  for (const float most : {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CHECK_THROWS_WITH_AS(pull(Precision::float32(), most), doctest::Contains("expected weight_limit to be 0 or more"),
                         Error);
  }
}

}  // namespace halfstep
