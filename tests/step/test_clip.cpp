#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "harness/device.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::Pull;

}  // namespace

TEST_CASE("finite gradients whose norm is infinite skip a step that clips them") {
  for (const float limit : {0.0F, 1.0F, 1e4F}) {
    CAPTURE(limit);
    Pull pull(4, 1, Sgd{.rate = 1}, Precision::float32(), 5,
              [&](TrainerOptions& options) { options.clip_norm = limit; });
    pull.run(3e38F, 1);
    CHECK(pull.trainer().report().skipped == (limit > 0 ? 1 : 0));
    CHECK((pull.weights()[0] == 1) == (limit > 0));
  }
}

TEST_CASE("gradients are clipped whose squares underflow or overflow") {
  struct Case {
    float limit;
    float pull;
    float scale = 1;
  };
  for (const bool reproducible : {false, true}) {  // which takes subnormal numbers for 0, as some devices do
    for (const Case& c : {Case{1e-30F, 1e-25F}, Case{1, 1e20F}, Case{2e3F, 1e30F}, Case{1, 9e30F, 0x1p24F},
                          Case{1, 2.5e33F, 65536}, Case{0.01F, 1e32F, 65536}}) {
      CAPTURE(reproducible);
      CAPTURE(c.pull);
      Precision precision = Precision::float32();
      precision.reproducible = reproducible;
      if (c.scale != 1) precision.loss_scale = LossScale::fixed(c.scale);
      Pull pull(4, 0, Sgd{.rate = 1}, precision, 5, [&](TrainerOptions& options) { options.clip_norm = c.limit; });
      pull.run(c.pull, 1);
      CHECK(pull.trainer().report().gradient_norm / c.pull == doctest::Approx(2));
      CHECK(pull.trainer().report().skipped == 0);
      CHECK(pull.weights()[0] / c.limit == doctest::Approx(-0.5));
    }
  }
}

TEST_CASE("gradients that no normal factor takes to the limit skip a step") {
  Pull pull(4, 1, Sgd{.rate = 1}, Precision::float32(), 5, [](TrainerOptions& options) { options.clip_norm = 1; });
  pull.run(1.5e38F, 1);
  CHECK(pull.trainer().report().skipped == 1);
  CHECK(pull.weights()[0] == 1);
}

TEST_CASE("gradients are clipped by a large one of any block") {
  constexpr std::size_t count = 400'003;
  if (!testing::device_takes(1, 4 * count)) return;
  Pull pull(count, 0, Sgd{.rate = 1}, Precision::float32(), 5, [](TrainerOptions& options) { options.clip_norm = 1; });
  std::vector<float> pulls(count, 0);
  pulls.back() = 1e20F;
  pull.trainer().step({{"pull", std::span<const float>(pulls)}});
  pull.trainer().finish();
  CHECK(pull.trainer().report().gradient_norm / 1e20F == doctest::Approx(1));
  const std::vector<float> weights = pull.weights();
  CHECK(weights.back() == doctest::Approx(-1));
  CHECK(std::count(weights.begin(), weights.end(), 0.0F) == count - 1);
}

}  // namespace halfstep
