// Steps that memory runs out in the middle of: what has run does not run again, and nothing is left out.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "host/temporary_folder.h"
#include "train/failing_submits.h"
#include "train/small_training.h"

namespace halfstep {

using testing::cut_device;
using testing::failing_samples;
using testing::failing_trainer;
using testing::Failures;
using testing::state_of;

namespace {

constexpr std::chrono::nanoseconds budget = std::chrono::microseconds(20);

}  // namespace

TEST_CASE("a step whose submits fail goes on where it ended, and trains to the same bits") {
  Failures failures;
  const Device device = cut_device();
  Trainer whole = failing_trainer(device);
  Trainer cut = failing_trainer(device);
  const std::size_t submits = failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    whole.step();
    whole.finish();
    const bool failed = failures.happen(submit, [&] { cut.step(); });
    if (failed) cut.step();
    REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole));
    CHECK(cut.report().step == whole.report().step);
    CHECK(cut.report().loss == whole.report().loss);
    return failed;
  });
  CHECK(submits > 5);
  CHECK((state_of(cut) == state_of(whole)));
  CHECK(cut.take_totals().mean_loss == whole.take_totals().mean_loss);
}

TEST_CASE("a step within budgets whose submits fail goes on where it ended, and trains to the same bits") {
  Failures failures;
  const Device device = cut_device();
  Trainer whole = failing_trainer(device);
  Trainer cut = failing_trainer(device);
  const std::size_t submits = failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    whole.step();
    whole.finish();
    failures.plan(submit);
    bool failed = false;
    for (bool ended = false; !ended;) {
      try {
        ended = cut.run_for(budget);
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::out_of_memory);
        REQUIRE(!failed);
        failed = true;
      }
    }
    CHECK(failed == failures.happened());
    REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole));
    CHECK(cut.report().step == whole.report().step);
    return failed;
  });
  CHECK(submits > 5);
  CHECK((state_of(cut) == state_of(whole)));
}

TEST_CASE("what needs the weights ends a step that failed, or fails itself") {
  Failures failures;
  const Device device = cut_device();
  const TemporaryFolder folder;
  Trainer whole = failing_trainer(device);
  Trainer cut = failing_trainer(device);
  const auto both_step = [&] {
    whole.step();
    whole.finish();
    REQUIRE(failures.happen(4, [&] { cut.step(); }));
  };
  const auto check_same = [&] { REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole)); };

  both_step();
  const std::filesystem::path path = folder.path() / "checkpoint";
  CHECK(failures.happen(1, [&] { cut.save(path); }));
  CHECK(!std::filesystem::exists(path));
  CHECK(failures.happen(2, [&] { static_cast<void>(cut.checkpoint()); }));
  cut.save(path);
  CHECK((testing::contents(path) == state_of(whole)));
  CHECK(cut.report().step == 1);

  both_step();
  CHECK(cut.evaluate(failing_samples()).loss == whole.evaluate(failing_samples()).loss);
  check_same();

  Graph graph;
  const Tensor bias = scale((graph.root() / "dense").parameter("bias", {5}, constant(0)), 2);
  Predictor of_whole = Predictor::compile(whole, graph, bias);
  Predictor of_cut = Predictor::compile(cut, graph, bias);
  both_step();
  CHECK(of_cut.run({}) == of_whole.run({}));
  cut.step();  // the same step, of which nothing is left to submit
  check_same();

  both_step();
  while (!cut.run_for(budget)) {
  }
  check_same();
}

TEST_CASE("step() ends the step that it failed in, and makes another after one of run_for()") {
  Failures failures;
  const Device device = cut_device();
  Trainer whole = failing_trainer(device);
  Trainer cut = failing_trainer(device);
  const auto two_steps = [&] {
    for (int i = 0; i < 2; ++i) whole.step();
    whole.finish();
  };
  two_steps();
  CHECK(failures.happen(4, [&] {
    while (!cut.run_for(budget)) {
    }
  }));
  cut.step();
  REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole));
  two_steps();
  CHECK(!cut.run_for(std::chrono::nanoseconds(1)));
  CHECK(failures.happen(3, [&] { cut.step(); }));  // in what run_for() has left
  cut.step();
  REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole));
  // What has failed does not survive its trainer.
  CHECK(failures.happen(3, [&] { cut.step(); }));
  cut = failing_trainer(device);
  cut.step();
  CHECK(cut.take_totals().steps == 1);
}

TEST_CASE("a step that failed takes the values that it has begun on, and no others") {
  Failures failures;
  const Device device = cut_device();
  Graph graph;
  const Tensor pull = graph.input("pull", {64});
  const Tensor push = graph.input("push", {64});
  const Tensor w = graph.root().parameter("w", {64}, constant(1));
  const TrainerOptions options{.loss = sum(mul(mul(w, w), sub(pull, push))),
                               .optimizer = Adam{.rate = 0.01F},
                               .accumulate = 2,
                               .precision = Precision::float32()};
  Trainer whole = Trainer::compile(device, graph, options);
  Trainer cut = Trainer::compile(device, graph, options);
  std::vector<float> values(128);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 2;
  const std::vector<float> ones(128, 1);
  const Values first = std::span<const float>(values);
  const Values second = std::span<const float>(ones);
  using Inputs = std::map<std::string, Values>;
  const Inputs inputs{{"pull", first}, {"push", second}};
  const Inputs others{{"pull", second}, {"push", first}};
  const Inputs only_pull{{"pull", second}};
  const Inputs only_push{{"push", first}};
  failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    whole.step(inputs);
    whole.finish();
    const bool failed = failures.happen(submit, [&] { cut.step(inputs); });
    if (failed && submit > 1) {
      CHECK_THROWS_WITH_AS(cut.step(others), doctest::Contains("got others. Hint: finish()"), Error);
      CHECK_THROWS_WITH_AS(cut.step(only_pull), doctest::Contains("'push', got none"), Error);
      CHECK_THROWS_WITH_AS(cut.step(only_push), doctest::Contains("'pull', got none"), Error);
    }
    if (failed) cut.step(inputs);
    REQUIRE(cut.parameter("w") == whole.parameter("w"));
    return failed;
  });
  CHECK((state_of(cut) == state_of(whole)));
}

}  // namespace halfstep
