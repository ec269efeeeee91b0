// What is not step() or run_for() and runs out of memory in the middle, ranks, and reports.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/faults.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "train/failing_submits.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {

using testing::cut_device;
using testing::failing_samples;
using testing::failing_trainer;
using testing::Failures;
using testing::state_of;

namespace {

constexpr std::chrono::nanoseconds budget = std::chrono::microseconds(20);

/// Another rank that does as this one does, until it fails.
class Twin final : public testing::Mirror {
 public:
  bool is_gone = false;
  std::size_t sums = 0;  ///< that were begun
  float seconds = 1;     ///< that it takes for a micro-batch, of which this one takes one second

  void begin_sum(std::span<float> values, const WireFormat& format) override {
    ++sums;
    Mirror::begin_sum(values, format);
    const bool times = values.size() == 2 && values[0] > 0 && values[1] == 0;  // of which each rank tells its own
    if (times) std::ranges::copy(std::array{1.0F, seconds}, values.begin());
  }
  void wait() override {
    if (is_gone) fail("test", "expected the other rank, got none");
  }
  [[noreturn]] void abort(std::string_view message, int) override { fail("test", message); }
};

Trainer rank_of(const std::shared_ptr<Twin>& twin, const Device& device,
                const std::function<void(TrainerOptions&)>& also = {}) {
  const auto change = [&](TrainerOptions& options) {
    options.clip_norm = 0.5F;
    options.ranks = Ranks(twin);
    options.ranks.bucket_bytes = 1;
    if (also) also(options);
  };
  return testing::toy_trainer(failing_samples(), {.batch = 16, .device = device, .change = change});
}

}  // namespace

TEST_CASE("a prediction that failed leaves nothing in the next one") {
  Failures failures;
  const Device device = cut_device();
  Graph graph;
  const Tensor x = graph.input("x", {16, 16});
  Predictor predictor = Predictor::compile(device, graph, matmul(softmax(matmul(x, x)), x));
  std::vector<float> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i * 37 % 101) / 50;
  const std::vector<float> others(values.rbegin(), values.rend());
  const std::map<std::string, Values> first{{"x", std::span<const float>(values)}};
  const std::map<std::string, Values> second{{"x", std::span<const float>(others)}};
  const std::vector<float> of_first = predictor.run(first);
  const std::vector<float> of_second = predictor.run(second);
  REQUIRE(of_first != of_second);
  const std::size_t submits = failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    std::vector<float> got = of_first;
    const bool failed = failures.happen(submit, [&] { got = predictor.run(first); });
    CHECK(got == of_first);
    CHECK(predictor.run(second) == of_second);
    return failed;
  });
  CHECK(submits > 1);
}

TEST_CASE("weights that failed to load are those of no file") {
  Failures failures;
  const TemporaryFolder folder;
  const Device device = cut_device();
  Graph graph;
  const Tensor x = graph.input("x", {4, 3});
  const Tensor hidden = models::batch_norm(graph.root() / "bn", models::dense(graph.root() / "a", x, 5));
  const Tensor y = models::dense(graph.root() / "b", hidden, 2);
  for (const std::uint64_t seed : {1U, 2U}) {
    Trainer trainer = Trainer::compile(device, graph, {.loss = mean(y), .optimizer = Sgd{}, .seed = seed});
    trainer.save_weights(folder.path() / std::to_string(seed));
  }
  const std::vector<float> values{1, -2, 3, 0.5F, 2, 1, -1, 0, 4, 1, 1, 2};
  const std::map<std::string, Values> inputs{{"x", std::span<const float>(values)}};
  Predictor predictor = Predictor::compile(device, graph, y);
  predictor.load_weights(folder.path() / "2");
  const std::vector<float> expected = predictor.run(inputs);
  failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    predictor.load_weights(folder.path() / "1");
    const bool failed = failures.happen(submit, [&] { predictor.load_weights(folder.path() / "2"); });
    if (failed) {
      CHECK_THROWS_WITH_AS(predictor.run(inputs), doctest::Contains("expected weights to run with"), Error);
      predictor.load_weights(folder.path() / "2");
    }
    CHECK(predictor.run(inputs) == expected);
    return failed;
  });
}

TEST_CASE("an evaluation that failed leaves nothing in the next one, nor in the training") {
  Failures failures;
  const Device device = cut_device();
  Trainer whole = failing_trainer(device);
  Trainer cut = failing_trainer(device);
  whole.step();
  cut.step();
  const Evaluation wanted = whole.evaluate(failing_samples());
  for (const std::size_t submit : {1U, 2U, 3U, 5U, 8U}) {
    CAPTURE(submit);
    CHECK(failures.happen(submit, [&] { static_cast<void>(cut.evaluate(failing_samples())); }));
    const Evaluation got = cut.evaluate(failing_samples());
    CHECK(got.loss == wanted.loss);
    CHECK(got.metrics == wanted.metrics);
  }
  CHECK(failures.happen(3, [&] { static_cast<void>(cut.evaluate(failing_samples())); }));
  whole.step();
  cut.step();
  CHECK(testing::toy_weights(cut) == testing::toy_weights(whole));
  CHECK(cut.evaluate(failing_samples()).loss == whole.evaluate(failing_samples()).loss);
}

TEST_CASE("a timed step whose submits fail is ended by what comes next, and only then") {
  Failures failures;
  const Device device = cut_device();
  if (vk::context_of(device).capabilities().timestamp_bits == 0) return;
  Trainer whole = failing_trainer(device);
  Trainer cut = failing_trainer(device);
  constexpr std::size_t before_steps = 2;  // keys of noise for each slot
  std::size_t turn = 0;
  const std::size_t submits = failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    ++turn;
    whole.step();
    const bool failed = failures.happen(submit, [&] {
      if (turn % 2 == 0) {
        static_cast<void>(cut.inspect().profile(1));
      } else {
        static_cast<void>(cut.inspect().timeline(1));
      }
    });
    const bool begun = failed && submit > before_steps + 1;
    if (failed && !begun) cut.step();
    // Ended by a step after it, by one within budgets, by another timed step or by what reads weights.
    if (turn % 4 < 3) whole.step();
    if (turn % 4 == 0) cut.step();
    if (turn % 4 == 1) static_cast<void>(cut.inspect().profile(1));
    if (turn % 4 == 2) {
      if (begun) {
        while (!cut.run_for(budget)) {
        }
      }
      while (!cut.run_for(budget)) {
      }
    }
    whole.finish();
    REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole));
    CHECK(cut.report().step == whole.report().step);
    CHECK(cut.report().loss == whole.report().loss);
    return failed;
  });
  CHECK(submits > 5);
  CHECK((state_of(cut) == state_of(whole)));
  CHECK(cut.take_totals().steps == whole.take_totals().steps);
}

TEST_CASE("a rank's step whose submits fail exchanges everything once") {
  Failures failures;
  const Device device = cut_device();
  Trainer whole = rank_of(std::make_shared<Twin>(), device);
  Trainer cut = rank_of(std::make_shared<Twin>(), device);
  failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    whole.step();
    whole.finish();
    const bool failed = failures.happen(submit, [&] { cut.step(); });
    if (failed) cut.step();
    REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole));
    CHECK(cut.report().loss == whole.report().loss);
    return failed;
  });
  CHECK((state_of(cut) == state_of(whole)));
}

namespace {

void measured(TrainerOptions& options) {
  options.accumulate = 2;
  options.ranks.balance = {.measured = true, .every = 3};
}

}  // namespace

TEST_CASE("a rank's step whose submits fail counts once, so ranks compare their times before the same one") {
  Failures failures;
  const Device device = cut_device();
  const auto of_whole = std::make_shared<Twin>();
  const auto of_cut = std::make_shared<Twin>();
  Trainer whole = rank_of(of_whole, device, measured);
  Trainer cut = rank_of(of_cut, device, measured);
  failures.at_each([&](std::size_t submit) {
    CAPTURE(submit);
    whole.step();
    const bool failed = failures.happen(submit, [&] { cut.step(); });
    if (failed) cut.step();
    CHECK(of_cut->sums == of_whole->sums);
    return failed;
  });
  CHECK((state_of(cut) == state_of(whole)));
}

TEST_CASE("a rank that could not take another part of its steps goes on, and takes it with the next one") {
  Failures failures;
  const Device device = cut_device();
  const auto of_whole = std::make_shared<Twin>();
  const auto of_cut = std::make_shared<Twin>();
  Trainer whole = rank_of(of_whole, device, measured);
  Trainer cut = rank_of(of_cut, device, measured);
  whole.inspect().watch("*gradient", 2);
  cut.inspect().watch("*gradient", 2);
  const auto step = [&] {
    whole.step();
    cut.step();
  };
  for (int i = 0; i < 6; ++i) step();
  std::size_t call = 0;
  for (bool failed = true; failed;) {
    ++call;
    CAPTURE(call);
    of_whole->seconds = of_cut->seconds = call % 2 == 1 ? 3 : 1;
    whole.step();
    failures.plan(testing::Fault{"vkCreateBuffer", call, VK_ERROR_OUT_OF_HOST_MEMORY});
    try {
      cut.step();
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::out_of_memory);
    }
    failed = failures.happened();
    if (failed) {
      static_cast<void>(cut.checkpoint());
      static_cast<void>(cut.inspect().host_costs());
      try {
        static_cast<void>(cut.inspect().plan());
      } catch (const Error& error) {
        CHECK(std::string(error.what()).find("the next step makes it") != std::string::npos);
      }
      cut.step();
    }
    for (int i = 0; i < 2; ++i) step();
    REQUIRE(testing::toy_weights(cut) == testing::toy_weights(whole));
    CHECK(cut.inspect().take_records().size() == whole.inspect().take_records().size());
  }
  CHECK(call > 5);  // of slots, and of what is looked at
  CHECK((state_of(cut) == state_of(whole)));
}

TEST_CASE("weights that could not be saved between two synchronisations stay as they were") {
  Failures failures;
  const TemporaryFolder folder;
  const Device device = cut_device();
  const auto apart = [](TrainerOptions& options) { options.ranks.sync_every = 1000; };
  Trainer whole = rank_of(std::make_shared<Twin>(), device, apart);
  Trainer trainer = rank_of(std::make_shared<Twin>(), device, apart);
  testing::run(whole, 2);
  testing::run(trainer, 2);
  for (const bool trains_on : {false, true}) {
    CAPTURE(trains_on);
    failures.at_each([&](std::size_t submit) {
      CAPTURE(submit);
      failures.plan(submit);
      try {
        trainer.save_weights(folder.path() / "weights");
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::out_of_memory);
      }
      const bool failed = failures.happened();
      if (trains_on) {
        whole.step();
        trainer.step();
      }
      REQUIRE(testing::toy_weights(trainer) == testing::toy_weights(whole));
      return failed;
    });
    whole.step();  // by what operators read
    trainer.step();
    CHECK(testing::toy_weights(trainer) == testing::toy_weights(whole));
  }
}

TEST_CASE("a rank's step that fails in an exchange is not gone on with") {
  const auto twin = std::make_shared<Twin>();
  Trainer trainer = rank_of(twin, testing::device());
  trainer.step();
  twin->is_gone = true;
  CHECK_THROWS_WITH_AS(trainer.step(), doctest::Contains("expected the other rank"), Error);
  twin->is_gone = false;
  for (int i = 0; i < 2; ++i) {
    CHECK_THROWS_WITH_AS(trainer.step(), doctest::Contains("got one that an error ended in an exchange"), Error);
    CHECK_THROWS_WITH_AS(static_cast<void>(trainer.checkpoint()), doctest::Contains("ended in an exchange"), Error);
  }
}

TEST_CASE("a step's report is read, whatever keeps its times from being read or pieces from being recorded anew") {
  Failures failures;
  const Device device = cut_device();
  if (vk::context_of(device).capabilities().timestamp_bits == 0) return;
  Trainer whole = failing_trainer(device);
  for (int i = 0; i < 8; ++i) whole.step();
  const StepTotals wanted = whole.take_totals();
  for (const auto& [function, parts] :
       {std::pair("vkGetQueryPoolResults", false), {"vkGetQueryPoolResults", true}, {"vkBeginCommandBuffer", false}}) {
    CAPTURE(function);
    CAPTURE(parts);
    Trainer trainer = failing_trainer(device);
    const auto make_step = [&, in_parts = parts] {
      if (!in_parts) return trainer.step();
      while (!trainer.run_for(budget)) continue;
    };
    failures.plan(testing::Fault{function, 1, VK_ERROR_OUT_OF_HOST_MEMORY});
    for (int i = 0; i < 8; ++i) {
      try {
        make_step();
      } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::out_of_memory);
        make_step();
      }
    }
    CHECK(failures.happened());
    const StepTotals totals = trainer.take_totals();
    CHECK(totals.steps == 8);
    CHECK(totals.mean_loss == wanted.mean_loss);
    CHECK(testing::toy_weights(trainer) == testing::toy_weights(whole));
  }
}

}  // namespace halfstep
