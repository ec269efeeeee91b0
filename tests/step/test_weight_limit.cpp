#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "harness/device.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

constexpr float limit = 1.25F;

testing::Pull pull(const Precision& precision, float most) {
  return {7, 1, Sgd{.rate = 0.5F}, precision, 5, [=](TrainerOptions& options) { options.weight_limit = most; }};
}

}  // namespace

TEST_CASE("weights are limited on both sides after every update, and what operators read with them") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16(1), Precision::bfloat16(),
                              Precision::bfloat16(DType::bf16)}) {
    CAPTURE(precision.name);
    if (precision.name == "mixed") precision.loss_scale = LossScale::fixed(64);
    testing::Pull limited = pull(precision, limit);
    float expected = 1;  // every number on the way is exact in every type
    for (const float gradient : {-0.25F, -1.0F, 0.5F, 1.0F, 4.0F, 1.0F, -2.0F}) {
      limited.step(gradient);
      CHECK(limited.trainer().report().loss == 7 * gradient * expected);  // of what operators read
      expected = std::clamp(expected - 0.5F * gradient, -limit, limit);
      CHECK(limited.weights() == std::vector<float>(7, expected));
    }
    CHECK(expected == -0.25F);
    testing::Pull free = pull(precision, 0);
    free.step(-8);
    CHECK(free.weights() == std::vector<float>(7, 5));
  }
}

TEST_CASE("a limit of weights that is negative or not finite is refused") {
  for (const float most : {-1.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    CHECK_THROWS_WITH_AS(pull(Precision::float32(), most), doctest::Contains("expected weight_limit to be 0 or more"),
                         Error);
  }
}

}  // namespace halfstep
