#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>

#include "harness/device.h"
#include "step/check_update.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::Pull;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Has a training go on as if it had made so many updates.
void set_updates(Trainer& trainer, std::uint32_t updates) {
  testing::change_state(trainer, [=](state::StepState& state) { state.applied = updates; });
}

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// Runs an optimizer in double on one weight with the same gradient every step.
double reference_sgd(const Sgd& sgd, double w, double pull, int steps) {
  double v = 0;
  for (int i = 0; i < steps; ++i) {
    const double g = pull + static_cast<double>(sgd.weight_decay) * w;
    v = static_cast<double>(sgd.momentum) * v + g;
    w -= static_cast<double>(sgd.rate.rates[0]) * (sgd.nesterov ? g + static_cast<double>(sgd.momentum) * v : v);
  }
  return w;
}

double reference_adam(const AdamW& adam, bool decoupled, double w, double pull, int steps) {
  double m = 0;
  double v = 0;
  const auto rate = static_cast<double>(adam.rate.rates[0]);
  const auto beta1 = static_cast<double>(adam.beta1);
  const auto beta2 = static_cast<double>(adam.beta2);
  const auto decay = static_cast<double>(adam.weight_decay);
  for (int t = 1; t <= steps; ++t) {
    const double g = decoupled ? pull : pull + decay * w;
    if (decoupled) w -= rate * decay * w;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    w -= rate * (m / (1 - std::pow(beta1, t))) /
         (std::sqrt(v / (1 - std::pow(beta2, t))) + static_cast<double>(adam.epsilon));
  }
  return w;
}

}  // namespace

TEST_CASE("optimizers follow their formulas in every precision") {
  const Sgd kinds[] = {{.rate = 0.125F},
                       {.rate = 0.125F, .momentum = 0.5F, .weight_decay = 0.25F},
                       {.rate = 0.125F, .momentum = 0.5F, .nesterov = true}};
  for (const Sgd& sgd : kinds) {
    testing::check_update(sgd, std::vector<float>(9, 0.5F), reference_sgd(sgd, 2, 0.5, 9));
  }
  const AdamW adam{.rate = 0.01F, .epsilon = 0.25F, .weight_decay = 0.1F};  // so large an epsilon shows its place
  const std::vector<float> gradients(20, 0.5F);
  testing::check_update(Adam{.rate = adam.rate, .epsilon = adam.epsilon, .weight_decay = adam.weight_decay}, gradients,
                        reference_adam(adam, false, 2, 0.5, 20));
  testing::check_update(adam, gradients, reference_adam(adam, true, 2, 0.5, 20));
}

TEST_CASE("Adam's first update is the rate, however little of a gradient the second moment takes") {
  std::vector<float> gradients(101);
  for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] = 0.5F + static_cast<float>(i) / 101;
  Pull pull(101, 0, Adam{.rate = 1, .beta2 = 0.99999F}, Precision::float32());
  pull.trainer().step({{"pull", std::span<const float>(gradients)}});
  for (const float w : pull.weights()) CHECK(w == doctest::Approx(-1).epsilon(1e-6));
}

TEST_CASE("Adam's bias correction is exact after any number of updates") {
  for (const float beta2 : {0.0F, 0.9F, 0.999F, 0.99999F, 0.9999999F}) {
    const Adam adam{.rate = 1, .beta1 = 0.75F, .beta2 = beta2};
    const auto correction = [](double beta, std::uint32_t t) { return 1 - std::pow(beta, t); };
    for (const std::uint32_t before : {0U, 1U, 2U, 5U, 30U, 999U, 1'000U, 50'000U, 2'000'000U}) {
      CAPTURE(beta2);
      CAPTURE(before);
      Pull pull(3, 0, adam, Precision::float32());
      set_updates(pull.trainer(), before);
      pull.run(0.5F, 1);
      // The moments were zero.
      const auto beta = static_cast<double>(beta2);
      const double m = 0.25 * 0.5 / correction(0.75, before + 1);
      const double v = (1 - beta) * 0.25 / correction(beta, before + 1);
      const double wanted = m / (std::sqrt(v) + static_cast<double>(adam.epsilon));
      for (const float w : pull.weights()) CHECK(static_cast<double>(w) == doctest::Approx(-wanted).epsilon(1e-6));
    }
  }
}

TEST_CASE("a loss scale changes nothing but the range of the gradients") {
  const auto weights = [](LossScale scale) {
    Precision precision = Precision::mixed();
    precision.loss_scale = scale;
    Pull pull(5, 1, Sgd{.rate = 0.5F}, precision);
    pull.run(0.25F, 3);
    return pull.weights();
  };
  CHECK(weights(LossScale::none()) == weights(LossScale::fixed(1024)));
  CHECK(weights(LossScale::none()) == weights(LossScale::dynamic(256)));
}

TEST_CASE("the mean of a tensor in f16 takes a loss scale that is no number of f16") {
  constexpr std::int64_t count = 1024;
  Graph graph;
  const Tensor pull = graph.input("pull", {count});
  const Tensor w = graph.root().parameter("w", {count}, constant(0));
  Trainer trainer = Trainer::compile(
      testing::device(), graph,
      {.loss = mean(mul(w, pull)), .optimizer = Sgd{.rate = count}, .precision = Precision::float16(0x1p17F)});
  trainer.step({{"pull", std::span<const float>(std::vector<float>(count, 0.5F))}});
  CHECK(trainer.report().skipped == 0);
  CHECK(trainer.parameter("w")[0] == -0.5F);
}

TEST_CASE("a gradient too small for f16 arrives with a loss scale, and not without") {
  const auto moved = [](LossScale scale) {
    Precision precision = Precision::mixed();
    precision.loss_scale = scale;
    Graph graph;
    const Tensor x = graph.input("x", {4});
    const Tensor w = graph.root().parameter("w", {4}, constant(0));
    // d loss / d w = 2^-26 * x: below half of f16's smallest subnormal number.
    const Tensor loss = halfstep::scale(sum(mul(w, x)), 0x1p-26F);
    Trainer trainer =
        Trainer::compile(testing::device(), graph, {.loss = loss, .optimizer = Sgd{.rate = 1}, .precision = precision});
    const std::vector<float> ones(4, 1.0F);
    trainer.step({{"x", std::span<const float>(ones)}});
    return trainer.parameter("w")[0];
  };
  CHECK(moved(LossScale::none()) == 0);
  CHECK(moved(LossScale::fixed(4096)) == -0x1p-26F);
}

TEST_CASE("an overflowed step is skipped whole, in every precision") {
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::float16()}) {
    CAPTURE(precision.name);
    // 65536, the default, exceeds the range of f16, in which this model's loss is computed.
    if (precision.name == "mixed") precision.loss_scale.initial = 1024;
    Pull pull(9, 1, Adam{.rate = 0.125F}, precision);
    pull.run(0.5F, 3);
    const std::vector<float> before = pull.weights();
    const float scale = pull.trainer().report().loss_scale;
    for (const float bad : {infinity, -infinity, std::nanf("")}) pull.run(bad, 1);
    const StepReport report = pull.trainer().report();
    CHECK(pull.weights() == before);
    CHECK(report.step == 6);
    CHECK(report.applied == 3);
    CHECK(report.skipped == 3);
    CHECK(report.overflowed);
    // The report has the scale that the step used: the third bad step came after two backoffs.
    const bool dynamic = precision.loss_scale.kind == LossScale::Kind::dynamic;
    CHECK(report.loss_scale == (dynamic ? scale / 4 : scale));
    pull.run(0.5F, 1);
    CHECK(pull.trainer().report().applied == 4);
    CHECK(pull.weights() != before);
  }
}

TEST_CASE("moments, bias correction and schedule do not notice a skipped step") {
  const auto train = [](bool skip) {
    Precision precision = Precision::mixed();
    precision.loss_scale = LossScale::fixed(8);
    Pull pull(6, 1, Adam{.rate = Schedule::linear(0.1F, 0.01F, 10)}, precision);
    for (int i = 0; i < 8; ++i) {
      pull.step(0.5F);
      if (skip && i % 2 == 0) pull.step(infinity);
    }
    return pull.weights();
  };
  CHECK(train(false) == train(true));
}

TEST_CASE("the dynamic loss scale backs off, holds at the floor, grows after the interval and holds at the ceiling") {
  Precision precision = Precision::mixed();
  precision.loss_scale =
      LossScale{.kind = LossScale::Kind::dynamic, .initial = 16, .growth = 4, .interval = 3, .floor = 4, .ceiling = 32};
  Pull pull(3, 1, Sgd{.rate = 0.001F}, precision);
  const auto scale_after = [&](float gradient) {
    pull.run(gradient, 1);
    pull.step(infinity);  // its report has the scale that the previous step left
    pull.trainer().finish();
    return pull.trainer().report().loss_scale;
  };
  CHECK(scale_after(infinity) == 8);  // 16 -> 8, then 4: the floor
  CHECK_THROWS_WITH_AS(pull.run(infinity, 4), doctest::Contains("floor of 4, got an overflow in step 3: in 'w'"),
                       Error);
  pull.run(1, 4);  // three good steps: 16; one more
  CHECK(pull.trainer().report().loss_scale == 16);
  pull.run(1, 3);  // two complete the next three: 32, the ceiling
  CHECK(pull.trainer().report().loss_scale == 32);
  pull.run(1, 9);
  CHECK(pull.trainer().report().loss_scale == 32);
}

TEST_CASE("a load undoes an overflow at the floor with its step") {
  Precision precision = Precision::mixed();
  precision.loss_scale = LossScale::dynamic(1);
  Pull pull(3, 1, Sgd{.rate = 0.5F}, precision);
  pull.step(1);
  const Checkpoint good = pull.trainer().checkpoint();
  pull.step(infinity);
  CHECK(pull.trainer().load(good).step == 1);
  CHECK_NOTHROW(pull.run(1, 2));
  CHECK(pull.weights() == std::vector<float>(3, -0.5F));
}

TEST_CASE("good steps are counted from the last overflow, and from the last growth") {
  Precision precision = Precision::mixed();
  precision.loss_scale = LossScale{.kind = LossScale::Kind::dynamic, .initial = 16, .growth = 2, .interval = 3};
  Pull pull(3, 1, Sgd{.rate = 0.001F}, precision);
  std::vector<float> scales;
  for (const float gradient : {1.0F, 1.0F, infinity, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, infinity, 1.0F, 1.0F, 1.0F}) {
    pull.step(gradient);
    scales.push_back(pull.trainer().report().loss_scale);
  }
  CHECK(scales == std::vector<float>{16, 16, 16, 8, 8, 8, 16, 16, 16, 32, 16, 16, 16});
}

TEST_CASE("one number that is not finite skips the step, wherever it is among the gradients") {
  // So many that check.comp needs several workgroups of any size, and each invocation reads its full number of quads.
  constexpr std::size_t count = 20011;
  Precision scaled = Precision::mixed();
  scaled.gradient_scales = GradientScales::per_tensor;
  for (Precision precision : {Precision::float32(), Precision::mixed(), Precision::bfloat16(), scaled}) {
    CAPTURE(precision.name);
    precision.loss_scale = LossScale::none();
    Pull pull(count, 1, Sgd{.rate = 0.5F}, precision);
    std::uint64_t skipped = 0;
    for (std::size_t place = 0; place < count; place += 401) {
      CAPTURE(place);
      std::vector<float> pulls(count, 0.25F);
      pulls[place] = place % 2 == 0 ? infinity : std::nanf("");
      pull.trainer().step({{"pull", std::span<const float>(pulls)}});
      pull.trainer().finish();
      CHECK(pull.trainer().report().skipped == ++skipped);
    }
    CHECK(pull.weights() == std::vector<float>(count, 1));
  }
}

TEST_CASE("rates follow the schedule by applied step, and its last holds") {
  Pull pull(4, 0, Sgd{.rate = Schedule(std::vector<float>{1, 0.5F, 0.25F})}, Precision::float32());
  pull.run(1, 5);
  CHECK(pull.weights()[0] == -(1 + 0.5F + 0.25F * 3));
  CHECK(pull.trainer().report().rate == 0.25F);
}

TEST_CASE("the last rate holds however many updates were made") {
  const Sgd by_schedule{.rate = Schedule(std::vector<float>{1, 0.5F, 0.25F})};
  for (const bool of_group : {false, true}) {
    CAPTURE(of_group);
    Pull pull(4, 0, of_group ? Sgd{.rate = 1} : by_schedule, Precision::float32(), 5, [&](TrainerOptions& options) {
      if (of_group) options.groups = {{.pattern = "w", .optimizer = by_schedule}};
    });
    for (const std::uint32_t updates : {0x7FFFFFFDU, 0xFFFFFFFDU}) {
      set_updates(pull.trainer(), updates);
      pull.run(1, 1);
      float weight = pull.weights()[0];
      for (int i = 0; i < 4; ++i) {
        pull.run(1, 1);
        CHECK(pull.weights()[0] == weight - 0.25F);
        weight = pull.weights()[0];
      }
      CHECK(pull.trainer().report().applied == std::min<std::uint64_t>(std::uint64_t{updates} + 5, 0xFFFFFFFF));
    }
  }
}

TEST_CASE("loss scales whose reciprocal is no normal number are refused") {
  const auto compile = [](const LossScale& scale) {
    Precision precision = Precision::float32();
    precision.loss_scale = scale;
    Pull(4, 1, Sgd{}, precision);
  };
  CHECK_NOTHROW(compile(LossScale::fixed(0x1p125F)));
  CHECK_THROWS_WITH_AS(compile(LossScale::fixed(0x1p126F)), doctest::Contains("from 2^-125 to 2^125"), Error);
  CHECK_THROWS_WITH_AS(compile(LossScale::fixed(0x1p-126F)), doctest::Contains("from 2^-125 to 2^125"), Error);
  LossScale growing = LossScale::dynamic();
  growing.ceiling = 0x1p126F;
  CHECK_THROWS_WITH_AS(compile(growing), doctest::Contains("ceiling <= 2^125"), Error);
}

TEST_CASE("a weight whose gradient is 0 stays where it is with the smallest epsilon") {
  constexpr float smallest = 0x1p-125F;
  for (const bool reproducible : {false, true}) {
    Precision precision = Precision::float32();
    precision.reproducible = reproducible;
    for (const Optimizer& optimizer : {Optimizer(Adam{.epsilon = smallest}), Optimizer(RmsProp{.epsilon = smallest})}) {
      Pull pull(4, 1, optimizer, precision);
      pull.run(0, 2);
      CHECK(pull.weights()[0] == 1);
    }
  }
  CHECK_THROWS_WITH_AS(Pull(4, 1, Adam{.epsilon = 1e-38F}, Precision::float32()),
                       doctest::Contains("expected epsilon to be 2^-125 or more"), Error);
}

TEST_CASE("stochastic rounding is unbiased where nearest would stand still") {
  // The step is a fraction of a unit in the last place of the weight; normal and subnormal numbers, both signs.
  struct Case {
    float start;
    float step;
    float unit;  // spacing of f16 near the start
  };
  constexpr int steps = 40;
  constexpr int count = 4096;
  for (const Case& c : {Case{1.5F, 1e-4F, 0x1p-10F}, Case{-1.5F, 1e-4F, 0x1p-10F}, Case{0x1p-15F, 3e-9F, 0x1p-24F},
                        Case{-0x1p-15F, 3e-9F, 0x1p-24F}, Case{600, 0.03F, 0.5F}}) {
    CAPTURE(c.start);
    Pull pull(count, c.start, Sgd{.rate = c.step}, Precision::float16(1));
    pull.run(1, steps);
    const double expected = static_cast<double>(c.start) - steps * static_cast<double>(c.step);
    // Each rounding's variance is at most unit^2 / 4, and they add up over the steps.
    const double sigma = static_cast<double>(c.unit) / 2 * std::sqrt(double{steps} / count);
    CHECK(std::abs(mean_of(pull.weights()) - expected) < 4 * sigma);
  }
}

TEST_CASE("stochastic rounding never makes an infinity of a finite weight") {
  Pull pull(4096, 65472, Sgd{.rate = 1}, Precision::float16(1));
  pull.run(-31.9F, 1);  // 65503.9: between the two largest f16 numbers
  const std::vector<float> weights = pull.weights();
  CHECK(std::ranges::all_of(weights, [](float w) { return w == 65472 || w == 65504; }));
  CHECK(std::ranges::count(weights, 65504.0F) > 4000);
}

TEST_CASE("the f16 copy of a master beyond its range is its largest number, where overflows saturate") {
  Precision precision = testing::plain(Precision::mixed());
  precision.overflow = Overflow::saturate;
  Pull pull(1, 65000, Sgd{.rate = 10'000}, precision);
  pull.run(-0.5F, 2);
  CHECK(pull.weights()[0] == 75'000);
  CHECK(pull.trainer().report().loss == -0.5F * 65504);
}

TEST_CASE("the f16 copy is the master rounded to nearest, so that sums of small steps are not lost") {
  Precision precision = Precision::mixed();
  precision.loss_scale = LossScale::fixed(256);
  Pull pull(5, 1, Sgd{.rate = 1e-4F}, precision);
  pull.run(1, 100);
  for (const float w : pull.weights()) CHECK(w == doctest::Approx(0.99).epsilon(1e-6));
}

}  // namespace halfstep
