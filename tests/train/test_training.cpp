#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "train/small_training.h"

namespace halfstep {
namespace {

using testing::run;

Precision precision_called(std::string_view name) {
  if (name == "float32") return Precision::float32();
  if (name == "mixed") return Precision::mixed();
  return Precision::float16();
}

/// A trainer whose step takes the device many times longer than the host needs to submit one, however busy the host is.
Trainer slow_trainer() {
  static const Dataset set = testing::toy_dataset(256, {32, 32, 4}, 3);
  return testing::toy_trainer(set, {.batch = 256});
}

/// Trains until a step has to wait for a slot: sooner or later, however the host is scheduled.
void step_until_slots_are_full(Trainer& slow) {
  for (int i = 0; i < 1'000 && slow.inspect().host_costs().waits_for_slot == 0; ++i) slow.step();
}

}  // namespace

TEST_CASE("every precision and optimizer learns") {
  const Dataset test = testing::toy_dataset(101, {6, 5, 1}, 3, 2);
  const Optimizer optimizers[] = {Sgd{.rate = 0.1F},
                                  Sgd{.rate = 0.02F, .momentum = 0.9F, .nesterov = true},
                                  Adam{.rate = 0.01F},
                                  AdamW{.rate = 0.01F, .weight_decay = 0.01F},
                                  Lion{.rate = 0.002F},
                                  RmsProp{.rate = 0.003F},
                                  RmsProp{.rate = 0.002F, .momentum = 0.5F, .centered = true}};
  for (const char* name : {"float32", "mixed", "float16"}) {
    for (const Optimizer& optimizer : optimizers) {
      CAPTURE(name);
      CAPTURE(optimizer->name());
      Trainer trainer =
          testing::toy_trainer(testing::toy_set(), {.optimizer = optimizer, .precision = precision_called(name)});
      const Evaluation before = trainer.evaluate(test);
      run(trainer, 300);
      const Evaluation after = trainer.evaluate(test);
      CHECK(after.samples == 101);
      CHECK(after.loss < 0.5 * before.loss);
      CHECK(after.metrics.at("accuracy") > 0.9);
    }
  }
}

TEST_CASE("the same seed gives the same bits, and another seed others") {
  for (const char* name : {"float32", "mixed", "float16"}) {
    CAPTURE(name);
    std::vector<std::vector<float>> weights;
    for (const std::uint64_t seed : {3U, 3U, 4U}) {
      Trainer trainer = testing::toy_trainer(testing::toy_set(), {.precision = precision_called(name), .seed = seed});
      run(trainer, 60);
      weights.push_back(testing::toy_weights(trainer));
    }
    CHECK(weights[0] == weights[1]);
    CHECK(weights[0] != weights[2]);
  }
}

TEST_CASE("a set that is streamed trains to the same bits as one on the device") {
  Trainer resident = testing::toy_trainer(testing::toy_set(), {});
  Trainer streamed = testing::toy_trainer(testing::toy_set(), {.resident_limit = 1});
  CHECK(resident.inspect().summary().data_bytes > 0);
  CHECK(streamed.inspect().summary().data_bytes == 0);
  run(resident, 80);
  run(streamed, 80);
  CHECK(testing::toy_weights(resident) == testing::toy_weights(streamed));
}

TEST_CASE("evaluation counts every sample once, whatever the batch") {
  const Dataset test = testing::toy_dataset(37, {6, 5, 1}, 3, 2);
  std::vector<double> losses;
  for (const std::int64_t batch : {1, 8, 37, 50}) {
    Trainer trainer = testing::toy_trainer(testing::toy_set(), {.batch = batch, .precision = Precision::float32()});
    const Evaluation all = trainer.evaluate(test);
    CHECK(all.samples == 37);
    losses.push_back(all.loss);
    const double right = all.metrics.at("accuracy") * 37;
    CHECK(std::abs(right - std::round(right)) < 1e-4);
  }
  // The same weights and samples in other batch sizes: only the order of f32 sums differs.
  for (const double loss : losses) CHECK(loss == doctest::Approx(losses[0]).epsilon(1e-5));
}

TEST_CASE("training does not disturb evaluation, or evaluation training") {
  const Dataset test = testing::toy_dataset(37, {6, 5, 1}, 3, 2);
  Trainer plain = testing::toy_trainer(testing::toy_set(), {});
  Trainer interrupted = testing::toy_trainer(testing::toy_set(), {});
  run(plain, 40);
  for (int i = 0; i < 40; ++i) {
    interrupted.step();
    if (i % 7 == 0) interrupted.evaluate(test);
  }
  CHECK(testing::toy_weights(plain) == testing::toy_weights(interrupted));
  CHECK(plain.evaluate(test).loss == interrupted.evaluate(test).loss);
}

TEST_CASE("evaluation ends where it is asked to stop, with what it has evaluated so far") {
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  const Dataset test = testing::toy_dataset(53, {6, 5, 1}, 3, 2);
  const auto after = [](int batches) { return [batches]() mutable { return batches-- == 0; }; };
  const Evaluation part = trainer.evaluate(test, Weights::current, after(3));
  const Evaluation whole = trainer.evaluate(test.take(24));
  CHECK(part.samples == 24);
  CHECK(part.loss == whole.loss);
  CHECK(part.metrics == whole.metrics);
  CHECK(trainer.evaluate(test, Weights::current, after(7)).samples == 52);  // five are left: four, and one
  CHECK(trainer.evaluate(test, Weights::current, after(8)).samples == 53);
  const Evaluation none = trainer.evaluate(test, Weights::current, after(0));
  CHECK(none.samples == 0);
  CHECK(std::isnan(none.loss));
}

TEST_CASE("totals are the means over the steps since the last ones, each step once") {
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  for (const std::uint64_t steps : {25U, 10U}) {
    double loss = 0;
    double accuracy = 0;
    for (std::uint64_t i = 0; i < steps; ++i) {
      run(trainer, 1);
      loss += static_cast<double>(trainer.report().loss);
      accuracy += static_cast<double>(trainer.report().metrics.at("accuracy"));
    }
    const auto count = static_cast<double>(steps);
    const StepTotals totals = trainer.take_totals();
    CHECK(totals.steps == steps);
    CHECK(totals.mean_loss == doctest::Approx(loss / count).epsilon(1e-12));
    CHECK(totals.mean_metrics.at("accuracy") == doctest::Approx(accuracy / count).epsilon(1e-12));
    CHECK(loss > 0);
    CHECK(accuracy > 0);
  }
  CHECK(trainer.report().step == 35);
}

TEST_CASE("step() waits for nothing but a free slot") {
  Trainer trainer = testing::toy_trainer(testing::toy_set(), {});
  for (int i = 0; i < 2; ++i) trainer.step();  // both slots were free
  CHECK(trainer.inspect().host_costs().waits_for_slot == 0);
  for (int i = 0; i < 10; ++i) {
    trainer.finish();  // both are free again
    for (int j = 0; j < 2; ++j) trainer.step();
  }
  CHECK(trainer.inspect().host_costs().waits_for_slot == 0);
  for (int i = 22; i < 1000; ++i) trainer.step();
  const HostCosts costs = trainer.inspect().host_costs();
  CHECK(costs.steps == 1000);
  CHECK(costs.waits_elsewhere == 0);
  Trainer slow = slow_trainer();
  step_until_slots_are_full(slow);
  CHECK(slow.inspect().host_costs().waits_for_slot > 0);
  CHECK(slow.inspect().host_costs().waits_elsewhere == 0);
}

TEST_CASE("waits for a slot count whichever program runs the steps") {
  Trainer trainer = slow_trainer();
  trainer.inspect().watch("*", 1);
  step_until_slots_are_full(trainer);
  const HostCosts costs = trainer.inspect().host_costs();
  CHECK(costs.waits_for_slot > 0);
  CHECK(costs.waits_elsewhere == 0);
  trainer.inspect().watch("");
  CHECK(trainer.inspect().host_costs().waits_for_slot == costs.waits_for_slot);
}

TEST_CASE("mixed and bfloat16 keep activations and gradients in 16 bits") {
  // Large enough that padding and workspaces do not hide it.
  const Dataset set = testing::toy_dataset(64, {32, 32, 4}, 3);
  const auto arena = [&](Precision precision) {
    return testing::toy_trainer(set, {.batch = 32, .precision = std::move(precision)}).inspect().summary().arena_bytes;
  };
  for (const Precision& precision : {Precision::mixed(), Precision::bfloat16()}) {
    CHECK(static_cast<double>(arena(precision)) < 0.6 * static_cast<double>(arena(Precision::float32())));
  }
}

TEST_CASE("the plan's bytes a parameter are those of the form the weights are kept in") {
  Precision narrow = Precision::float16();
  narrow.moments = DType::f16;
  narrow.rounding.optimizer = Rounding::stochastic;
  const auto summary = [&](const Precision& precision) {
    return testing::toy_trainer(testing::toy_set(), {.optimizer = Adam{}, .precision = precision}).inspect().summary();
  };
  const PlanSummary wide = summary(Precision::float32());
  const std::uint64_t elements = wide.weight_bytes / 4;
  const auto check = [&](const Precision& precision, std::uint64_t weights, std::uint64_t gradients,
                         std::uint64_t moments) {
    CAPTURE(precision.name);
    Trainer trainer = testing::toy_trainer(testing::toy_set(), {.optimizer = Adam{}, .precision = precision});
    const PlanSummary& plan = trainer.inspect().summary();
    CHECK(plan.weight_bytes == weights * elements);
    CHECK(plan.gradient_bytes == gradients * elements);
    CHECK(plan.optimizer_bytes == 2 * moments * elements);
    // The other memory is the same in all, except that a buffer that is not needed still takes 4 bytes.
    const auto others = [](const PlanSummary& of) {
      return static_cast<double>(of.peak_bytes - of.weight_bytes - of.gradient_bytes - of.optimizer_bytes -
                                 of.arena_bytes);
    };
    CHECK(std::abs(others(plan) - others(wide)) <= 4);
    const std::string text = trainer.inspect().plan();
    for (const auto& [bytes, store] : {std::pair(plan.weight_bytes, "weights"),
                                       {plan.gradient_bytes, "gradients"},
                                       {plan.optimizer_bytes, "optimizer state"}}) {
      CHECK(text.find(std::to_string(bytes) + " bytes of " + store) != std::string::npos);
    }
  };
  check(Precision::float32(), 4, 4, 4);
  check(Precision::mixed(), 6, 2, 4);
  check(Precision::float16(), 2, 2, 4);
  check(narrow, 2, 2, 2);
  check(Precision::bfloat16(), 6, 2, 4);
  check(Precision::bfloat16(DType::bf16), 2, 2, 4);
}

TEST_CASE("a profile times every dispatch of every step, and its steps train as any other") {
  Trainer profiled = testing::toy_trainer(testing::toy_set(), {});
  Trainer plain = testing::toy_trainer(testing::toy_set(), {});
  run(plain, 3);
  CHECK_THROWS_AS(profiled.inspect().profile(0), Error);
  const std::vector<DispatchCost> costs = profiled.inspect().profile(3);
  CHECK(costs.size() == profiled.inspect().summary().dispatches);
  CHECK(testing::toy_weights(profiled) == testing::toy_weights(plain));
  std::vector<double> end(3, 0);
  for (const DispatchCost& cost : costs) {
    CAPTURE(cost.label);
    REQUIRE(cost.runs.size() == 3);
    for (std::size_t step = 0; step < 3; ++step) {
      CHECK(cost.runs[step].begin >= end[step]);  // later where a piece begins: a slow machine cuts the step into some
      CHECK(cost.runs[step].end >= cost.runs[step].begin);
      end[step] = cost.runs[step].end;
    }
    CHECK(cost.milliseconds >= 0);
  }
  CHECK(end[0] > 0);
}

}  // namespace halfstep
