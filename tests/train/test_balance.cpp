// Ranks that take unequal parts of a step.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "harness/device.h"
#include "harness/errors.h"
#include "host/temporary_folder.h"
#include "train/balancer.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {

using testing::error_of;
using testing::has;

namespace {

struct Result {
  std::vector<float> weights;
  double loss = 0;
  double accuracy = 0;
  Evaluation test;

  bool operator==(const Result& other) const {
    return weights == other.weights && loss == other.loss && accuracy == other.accuracy &&
           test.loss == other.test.loss && test.metrics == other.test.metrics;
  }
};

Result result_of(Trainer& trainer) {
  const StepTotals totals = trainer.take_totals();
  return {testing::toy_weights(trainer), totals.mean_loss, totals.mean_metrics.at("accuracy"),
          trainer.evaluate(testing::toy_set())};
}

testing::ToyOptions toy(const std::function<void(TrainerOptions&)>& change) {
  return {.batch = 3, .augmentation = {.crop_padding = 1, .flip = 0.5F}, .dropout = 0.25F, .change = change};
}

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return largest;
}

/// The training set as a source.
Source source_of_set() {
  const std::vector<Field> fields = testing::toy_set().all_fields();
  Source source{.name = "set", .count = testing::toy_set().count, .fields = fields};
  for (Field& field : source.fields) field.data = {};
  source.fill = [fields](const SourceBatch& batch) {
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const std::size_t size = batch.room[f].size() / batch.indices.size();
      for (std::size_t i = 0; i < batch.indices.size(); ++i) {
        std::ranges::copy(fields[f].data.subspan(batch.indices[i] * size, size),
                          batch.room[f].subspan(i * size).begin());
      }
    }
  };
  return source;
}

/// Tells other ranks a time for a micro-batch, in the place of what was measured: the only sum of as many numbers as
/// there are ranks whose term is not 0.
class ToldTimes final : public testing::PassingExchange {
 public:
  ToldTimes(std::shared_ptr<Exchange> exchange, float seconds)
      : PassingExchange(std::move(exchange)), seconds_(seconds) {}

  void take(float seconds) { seconds_ = seconds; }
  void begin_sum(std::span<float> values, const WireFormat& format) override {
    float& own = values[static_cast<std::size_t>(rank())];
    if (std::ssize(values) == size() && own != 0) own = seconds_;
    PassingExchange::begin_sum(values, format);
  }

 private:
  float seconds_;
};

}  // namespace

TEST_CASE("ranks with given shares train as one process does") {
  // Where no rank but the first has several micro-batches, sums have the same order.
  for (const auto& [shares, precision, same, resident] :
       {std::tuple{std::vector{3.0, 1.0}, Precision::mixed(), true, 0U},
        {{1, 2, 3}, Precision::float32(), false, 1U}}) {
    CAPTURE(precision.name);
    const auto ranks = static_cast<int>(shares.size());
    testing::ToyOptions alone = toy([&](TrainerOptions& options) { options.accumulate = 2 * ranks; });
    alone.precision = precision;
    alone.resident_limit = resident;
    Trainer one = testing::toy_trainer(testing::toy_set(), alone);
    for (int step = 0; step < 14; ++step) one.step();
    const Result wanted = result_of(one);
    const std::vector<Result> got = testing::results_of_ranks<Result>(ranks, [&](int, const Ranks& as) {
      testing::ToyOptions part = alone;
      part.change = [&](TrainerOptions& options) {
        options.accumulate = 2;
        options.ranks = as;
        options.ranks.balance.shares = shares;
        options.ranks.compare_every = 5;
      };
      Trainer trainer = testing::toy_trainer(testing::toy_set(), part);
      for (int step = 0; step < 14; ++step) trainer.step();
      return result_of(trainer);
    });
    for (const Result& result : got) {
      CHECK(result == got.front());
      if (same) CHECK(result == wanted);
      CHECK(largest_difference(result.weights, wanted.weights) < 1e-4);
      CHECK(result.loss == doctest::Approx(wanted.loss).epsilon(1e-4));
    }
  }
}

TEST_CASE("a rank that becomes slow is given less, and a checkpoint goes on with any parts") {
  const Source source = source_of_set();
  std::vector<std::vector<std::string>> logs(2);
  std::vector<HostCosts> costs(2);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint";
  const auto from_source = [&](const std::function<void(TrainerOptions&)>& change) {
    return toy([&, change](TrainerOptions& options) {
      options.training_set = nullptr;
      options.source = &source;
      change(options);
    });
  };
  const std::vector<Result> got = testing::results_of_ranks<Result>(2, [&](int rank, const Ranks& as) {
    const auto told = std::make_shared<ToldTimes>(as.exchange, rank == 0 ? 1.0F : 5.0F);
    Trainer trainer = testing::toy_trainer(testing::toy_set(), from_source([&](TrainerOptions& options) {
                                             options.accumulate = 3;
                                             options.ranks = Ranks(told);
                                             options.ranks.balance = {.measured = true, .every = 5};
                                             options.log = [&](const std::string& line) {
                                               if (!line.starts_with("ranks: micro")) return;
                                               logs[static_cast<std::size_t>(rank)].push_back(line);
                                             };
                                           }));
    if (rank == 0) trainer.inspect().watch("*gradient", 3);
    for (int step = 0; step < 8; ++step) trainer.step();
    if (rank == 0) trainer.save(file);
    told->take(rank == 0 ? 3.0F : 1.0F);
    for (int step = 8; step < 18; ++step) trainer.step();
    costs[static_cast<std::size_t>(rank)] = trainer.inspect().host_costs();
    return result_of(trainer);
  });
  CHECK(got[0] == got[1]);
  for (const HostCosts& each : costs) CHECK(each.waits_elsewhere == 0);
  CHECK(logs[0] == std::vector<std::string>{"ranks: micro-batches 5:1, which take 1000.0:5000.0 ms each",
                                            "ranks: micro-batches 1:5, which take 3000.0:1000.0 ms each"});
  CHECK(logs[1] == logs[0]);

  // The same steps in one process.
  Trainer one =
      testing::toy_trainer(testing::toy_set(), from_source([](TrainerOptions& made) { made.accumulate = 6; }));
  for (int step = 0; step < 18; ++step) one.step();
  const Result wanted = result_of(one);
  CHECK(largest_difference(got[0].weights, wanted.weights) < 4e-3);
  CHECK(got[0].loss == doctest::Approx(wanted.loss).epsilon(1e-3));
  CHECK(one.load(file).step == 8);
  for (int step = 8; step < 18; ++step) one.step();
  CHECK(largest_difference(testing::toy_weights(one), wanted.weights) < 4e-3);
}

TEST_CASE("parts change where that is worth it, and times of one slow step do not count") {
  const std::vector<std::vector<std::uint32_t>> got =
      testing::results_of_ranks<std::vector<std::uint32_t>>(2, [&](int rank, const Ranks& as) {
        TrainerOptions own{.accumulate = 4};
        own.ranks = as;
        own.ranks.balance = {.measured = true, .every = 5};
        train::Balancer balancer(own);
        std::vector<std::uint32_t> counts;
        const auto steps = [&](int count, double first, double second) {
          for (int step = 0; step < count; ++step) {
            balancer.begin_step();
            const double each = rank == 0 ? first : second;
            balancer.note(step % 3 == 0 ? 50 : each * balancer.share().count);
          }
          balancer.begin_step();
          counts.push_back(balancer.share().count);
          balancer.note(50);
        };
        for (int step = 0; step < 6; ++step) {  // in truth
          balancer.begin_step();
          std::this_thread::sleep_for(std::chrono::milliseconds(rank == 0 ? 1 : 150));
          balancer.end_part();
        }
        steps(0, 1, 1);
        steps(4, 1, 1.05);
        steps(4, 1, 1.3);  // 5:3 would take 0.96 of the time
        steps(4, 1, 3);
        steps(4, 1, 2.9);
        steps(4, 2, 1);
        return counts;
      });
  CHECK(got[0] == std::vector<std::uint32_t>{7, 4, 4, 6, 6, 3});  // of 8
  CHECK(got[1] == std::vector<std::uint32_t>{1, 4, 4, 2, 2, 5});
}

TEST_CASE("a balance that cannot be is refused") {
  const auto refused = [](const std::function<void(TrainerOptions&)>& change) {
    const std::vector<std::string> errors = testing::results_of_ranks<std::string>(2, [&](int, const Ranks& as) {
      return error_of([&] {
        static_cast<void>(testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& options) {
                                                 options.ranks = as;
                                                 change(options);
                                               })));
      });
    });
    CHECK(errors[0] == errors[1]);
    return errors[0];
  };
  const auto with = [&](const Balance& balance) {
    return refused([&](TrainerOptions& options) { options.ranks.balance = balance; });
  };
  CHECK(has(with({.shares = {1}}), "a share for each of 2 ranks, got 1"));
  CHECK(has(with({.shares = {1, 0}}), "positive shares of ranks, got 0"));
  CHECK(has(with({.shares = {1, -2}}), "positive shares"));
  CHECK(has(with({.shares = {1, std::nan("")}}), "positive shares"));
  CHECK(has(with({.shares = {1, 2}, .measured = true}), "got both"));
  CHECK(has(with({.measured = true, .every = 2}), "Balance::every from 3 on"));
  CHECK(has(refused([](TrainerOptions& options) {
              options.ranks.balance.measured = true;
              options.precision.reproducible = true;
            }),
            "Precision::reproducible"));
  CHECK(has(error_of([] {
              TrainerOptions options;
              options.ranks.balance.measured = true;
              train::check_balance(options);
            }),
            "equal parts of ranks where steps are given values"));
  std::vector<std::string> errors(2);
  testing::on_ranks(2, [&](int rank, const Ranks& as) {
    errors[static_cast<std::size_t>(rank)] = error_of([&] {
      static_cast<void>(testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& options) {
                                               options.ranks = as;
                                               options.accumulate = 2;
                                               if (rank == 1) options.ranks.balance.measured = true;
                                             })));
    });
  });
  for (const std::string& error : errors) CHECK(has(error, "one division of micro-batches on all ranks"));
}

}  // namespace halfstep
