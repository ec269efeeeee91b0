// Errors of one rank, and what several cannot do.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/errors.h"
#include "harness/faults.h"
#include "host/temporary_folder.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {

using testing::Ended;
using testing::error_of;
using testing::has;
using testing::Mirror;

namespace {

testing::ToyOptions toy(const std::function<void(TrainerOptions&)>& change) {
  return {.batch = 4, .dropout = 0.25F, .change = change};
}

}  // namespace

TEST_CASE("what several ranks cannot do is refused") {
  const auto compiled = [](const std::function<void(TrainerOptions&)>& change) {
    return error_of([&] {
      static_cast<void>(testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& options) {
                                               options.ranks = Ranks(std::make_shared<Mirror>());
                                               change(options);
                                             })));
    });
  };
  CHECK(has(compiled([](TrainerOptions& options) { options.precision.stop_on.overflow = true; }), "stop_on"));
  CHECK(has(compiled([](TrainerOptions& options) { options.snapshot_every = 1; }), "snapshots"));
  CHECK(has(compiled([](TrainerOptions& options) { options.ranks.wire = DType::u32; }), "floating type"));
  CHECK(has(compiled([](TrainerOptions& options) { options.ranks.bucket_bytes = 0; }), "bucket_bytes"));

  Trainer trainer = testing::toy_trainer(
      testing::toy_set(), toy([](TrainerOptions& options) { options.ranks = Ranks(std::make_shared<Mirror>()); }));
  int commands = 0;
  CHECK(has(error_of([&] { trainer.run_for(std::chrono::milliseconds(1)); }), "one rank"));
  CHECK(has(error_of([&] { trainer.record(&commands); }), "one rank"));
  CHECK(has(error_of([&] { trainer.reopen(testing::device()); }), "one rank"));
  CHECK(has(error_of([&] { static_cast<void>(trainer.inspect().profile(1)); }), "one rank"));
  CHECK(has(error_of([&] { static_cast<void>(trainer.inspect().timeline(1)); }), "one rank"));
  trainer.step();
  trainer.finish();
}

TEST_CASE("a rank that loses its device ends all, whatever finds it lost") {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "file";
  const std::vector<float> bias{1, 2, 3};
  const std::pair<const char*, std::function<void(Trainer&)>> members[] = {
      {"step", [](Trainer& trainer) { trainer.step(); }},
      {"report", [](Trainer& trainer) { static_cast<void>(trainer.report()); }},
      {"finish", [](Trainer& trainer) { trainer.finish(); }},
      {"take_totals", [](Trainer& trainer) { static_cast<void>(trainer.take_totals()); }},
      {"evaluate", [](Trainer& trainer) { static_cast<void>(trainer.evaluate(testing::toy_set())); }},
      {"checkpoint", [](Trainer& trainer) { static_cast<void>(trainer.checkpoint()); }},
      {"save", [&](Trainer& trainer) { trainer.save(file); }},
      {"save_weights", [&](Trainer& trainer) { trainer.save_weights(file); }},
      {"load", [&](Trainer& trainer) { trainer.load(file); }},
      {"load_weights", [&](Trainer& trainer) { static_cast<void>(trainer.load_weights(file)); }},
      {"parameter", [](Trainer& trainer) { static_cast<void>(trainer.parameter("dense/bias")); }},
      {"set_parameter", [&](Trainer& trainer) { trainer.set_parameter("dense/bias", bias); }},
      {"watch", [](Trainer& trainer) { trainer.inspect().watch("*gradient", 1); }},
      {"trace", [](Trainer& trainer) { static_cast<void>(trainer.inspect().trace("w")); }},
      {"take_records", [](Trainer& trainer) { static_cast<void>(trainer.inspect().take_records()); }},
      {"take_reports", [](Trainer& trainer) { static_cast<void>(trainer.inspect().take_reports()); }}};
  testing::FaultyVulkan vulkan;
  for (const auto& [name, member] : members) {
    CAPTURE(name);
    testing::ToyOptions options = toy([](TrainerOptions& made) { made.ranks = Ranks(std::make_shared<Mirror>()); });
    options.device = Device::open(testing::device().info().name, {.tuning = Tuning::off, .may_fork = false});
    Trainer trainer = testing::toy_trainer(testing::toy_set(), options);
    trainer.save(file);
    trainer.step();
    vulkan.plan(testing::Fault{"vkGetFenceStatus", 1, VK_ERROR_DEVICE_LOST});
    try {
      member(trainer);
      FAIL_CHECK("it goes on");
    } catch (const Ended& ended) {
      CHECK(has(ended.message, "LOST"));
      CHECK(ended.exit_code == 1);
    } catch (const Error& error) {
      FAIL_CHECK(error.what());
    }
  }
}

TEST_CASE("ranks that overflow at the loss scale's floor say so at the same step, whoever has read its report") {
  Precision precision = Precision::mixed();
  precision.loss_scale = LossScale::dynamic(1);
  for (const bool watching : {false, true}) {
    CAPTURE(watching);
    using Outcome = std::pair<int, std::string>;
    const std::vector<Outcome> got = testing::results_of_ranks<Outcome>(2, [&](int rank, const Ranks& as) {
      const auto change = [&](TrainerOptions& options) { options.ranks = as; };
      testing::Pull pull(5, 1, Sgd{.rate = 0.25F}, precision, 5, change);
      if (watching && rank == 1) pull.trainer().inspect().watch("*gradient", 5);
      const std::vector<float> infinite(5, std::numeric_limits<float>::infinity());
      for (int step = 0; step < 8; ++step) {
        const std::string error = error_of([&] {
          pull.trainer().step({{"pull", std::span<const float>(infinite)}});
          if (rank == 0) pull.trainer().finish();
        });
        if (!error.empty()) return Outcome{step, error};
      }
      return Outcome{};
    });
    CHECK(got[0].first == 3);
    CHECK(has(got[0].second, "the loss scale's floor of 1, got an overflow in step 1: in 'w'"));
    CHECK(got[1] == got[0]);
  }
}

TEST_CASE("ranks that load different files of weights are told so at once") {
  const TemporaryFolder folder;
  for (const std::int64_t sync_every : {0, 4}) {
    std::vector<std::string> errors(2);
    testing::on_ranks(2, [&](int rank, const Ranks& as) {
      Trainer trainer = testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& options) {
                                               options.ranks = as;
                                               options.ranks.compare_every = 0;
                                               options.ranks.sync_every = sync_every;
                                             }));
      Trainer alone = testing::toy_trainer(testing::toy_set(), toy([](TrainerOptions&) {}));
      alone.set_parameter("dense/bias", std::vector<float>(3, static_cast<float>(rank)));
      const std::filesystem::path file = folder.path() / std::to_string(rank);
      alone.save_weights(file);
      errors[static_cast<std::size_t>(rank)] = error_of([&] { trainer.load_weights(file); });
    });
    for (const std::string& error : errors) CHECK(has(error, "another 'dense/bias' on rank 1"));
  }
}

}  // namespace halfstep
