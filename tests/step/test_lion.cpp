#include <doctest/doctest.h>

#include "step/check_update.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

/// Lion in double, on a weight of 2.
double reference(const Lion& lion, const std::vector<float>& gradients) {
  double w = 2;
  double m = 0;
  const auto rate = static_cast<double>(lion.rate.rates[0]);
  const auto beta1 = static_cast<double>(lion.beta1);
  const auto beta2 = static_cast<double>(lion.beta2);
  for (const float gradient : gradients) {
    const auto g = static_cast<double>(gradient);
    const double c = beta1 * m + (1 - beta1) * g;
    const double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
    w -= rate * (sign + static_cast<double>(lion.weight_decay) * w);
    m = beta2 * m + (1 - beta2) * g;
  }
  return w;
}

}  // namespace

TEST_CASE("Lion follows its formula in every precision") {
  // The average and the gradient have opposite signs in some steps, and each of them determines the sign in some.
  const std::vector<float> gradients{1, 1, 0.5F, -0.25F, -0.25F, 0, -4, -4, 0.5F};
  for (const float beta1 : {0.9F, 0.5F}) {
    for (const float weight_decay : {0.0F, 0.25F}) {
      CAPTURE(beta1);
      CAPTURE(weight_decay);
      const Lion lion{.rate = 0.0625F, .beta1 = beta1, .beta2 = 0.75F, .weight_decay = weight_decay};
      testing::check_update(lion, gradients, reference(lion, gradients));
    }
  }
}

TEST_CASE("Lion leaves a weight alone that never had a gradient") {
  testing::check_update(Lion{.rate = 0.5F}, {0, 0, 0}, 2);
}

TEST_CASE("Lion refuses hyperparameters that are out of range") {
  const auto compile = [](const Lion& lion) { testing::Pull(4, 1, lion, Precision::mixed()); };
  CHECK_NOTHROW(compile({}));
  CHECK_THROWS_WITH_AS(compile({.beta1 = 1}), doctest::Contains("[optimizer] expected beta1 to be in [0, 1), got 1"),
                       Error);
  CHECK_THROWS_WITH_AS(compile({.beta2 = -1}), doctest::Contains("expected beta2 to be in [0, 1), got -1"), Error);
  CHECK_THROWS_WITH_AS(compile({.rate = -1.0F}), doctest::Contains("expected rate"), Error);
  CHECK_THROWS_WITH_AS(compile({.weight_decay = -1}), doctest::Contains("expected weight_decay"), Error);
}

}  // namespace halfstep
