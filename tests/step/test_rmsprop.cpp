#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "step/check_update.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

/// PyTorch's RMSprop in double, on a weight of 2.
double reference(const RmsProp& rmsprop, const std::vector<float>& gradients) {
  double w = 2;
  double square = 0;
  double average = 0;
  double buffer = 0;
  const auto alpha = static_cast<double>(rmsprop.alpha);
  for (const float gradient : gradients) {
    const double g = static_cast<double>(gradient) + static_cast<double>(rmsprop.weight_decay) * w;
    square = alpha * square + (1 - alpha) * g * g;
    average = alpha * average + (1 - alpha) * g;
    const double spread = rmsprop.centered ? square - average * average : square;
    const double d = g / (std::sqrt(spread) + static_cast<double>(rmsprop.epsilon));
    buffer = static_cast<double>(rmsprop.momentum) * buffer + d;
    w -= static_cast<double>(rmsprop.rate.rates[0]) * buffer;
  }
  return w;
}

}  // namespace

TEST_CASE("RMSProp follows its formula in every precision") {
  const std::vector<float> gradients{1, 0.5F, -0.25F, 2, 1, -1, 0.75F, 0, 1};
  for (const bool centered : {false, true}) {
    for (const float momentum : {0.0F, 0.5F}) {
      for (const float weight_decay : {0.0F, 0.25F}) {
        CAPTURE(centered);
        CAPTURE(momentum);
        CAPTURE(weight_decay);
        const RmsProp rmsprop{.rate = 0.03125F,
                              .alpha = 0.75F,
                              .epsilon = 0.25F,  // so large that its place and size show
                              .momentum = momentum,
                              .centered = centered,
                              .weight_decay = weight_decay};
        testing::check_update(rmsprop, gradients, reference(rmsprop, gradients));
      }
    }
  }
}

TEST_CASE("a variance of nearly equal gradients is not negative, in f32 and in f16") {
  Precision precision = Precision::float16();
  precision.moments = DType::f16;
  for (const Precision& one : {Precision::float32(), precision}) {
    CAPTURE(one.name);
    testing::Pull pull(7, 1, RmsProp{.rate = 0x1p-20F, .alpha = 0.5F, .epsilon = 0.01F, .centered = true}, one);
    for (int i = 0; i < 40; ++i) pull.step(i % 2 == 0 ? 0.7F : 0.7002F);
    for (const float w : pull.weights()) CHECK(std::isfinite(w));
  }
}

TEST_CASE("RMSProp refuses hyperparameters that are out of range") {
  const auto compile = [](const RmsProp& rmsprop) { testing::Pull(4, 1, rmsprop, Precision::mixed()); };
  CHECK_NOTHROW(compile({}));
  CHECK_THROWS_WITH_AS(compile({.alpha = 1}), doctest::Contains("[optimizer] expected alpha to be in [0, 1), got 1"),
                       Error);
  CHECK_THROWS_WITH_AS(compile({.epsilon = 0}), doctest::Contains("expected epsilon to be 2^-125 or more, got 0"),
                       Error);
  CHECK_THROWS_WITH_AS(compile({.momentum = std::numeric_limits<float>::quiet_NaN()}),
                       doctest::Contains("expected momentum to be in [0, 1), got nan"), Error);
  CHECK_THROWS_WITH_AS(compile({.rate = -1.0F}), doctest::Contains("expected rate"), Error);
  CHECK_THROWS_WITH_AS(compile({.weight_decay = -1}), doctest::Contains("expected weight_decay"), Error);
}

}  // namespace halfstep
