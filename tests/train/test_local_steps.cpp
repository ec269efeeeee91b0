// Ranks that make steps by themselves, and synchronise their weights after some of them.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/errors.h"
#include "host/temporary_folder.h"
#include "io/safetensors.h"
#include "models/layers.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {

using testing::error_of;
using testing::has;
using testing::run;

namespace {

using WeightsOverTime = std::vector<std::vector<float>>;
using Change = std::function<void(TrainerOptions&)>;
using testing::on_ranks;
using testing::results_of_ranks;

/// Notes in which formats sums are exchanged.
class Counting final : public testing::PassingExchange {
 public:
  using PassingExchange::PassingExchange;
  void begin_sum(std::span<float> values, const WireFormat& format) override {
    formats.push_back(format.type);
    PassingExchange::begin_sum(values, format);
  }

  std::vector<DType> formats;
};

/// With running statistics, a frozen parameter and a micro-batch of each rank's own. Synchronises every 4 steps.
Trainer trainer_of(const Ranks& ranks, const Precision& precision, const Change& change = {}) {
  Graph graph;
  constexpr std::int64_t batch = 4;
  const Tensor images = graph.input("images", {batch, 6, 5, 1});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor conv = models::same_conv(graph.root() / "conv", images, 6, 3);
  const Tensor hidden = relu(models::batch_norm(graph.root() / "norm", conv));
  const Tensor logits = models::dense(graph.root() / "dense", dropout(flatten(hidden), 0.25F), 3);
  TrainerOptions options{.loss = cross_entropy(logits, labels),
                         .metrics = {{"accuracy", accuracy(logits, labels)}},
                         .optimizer = Adam{.rate = 0.01F, .epsilon = 1e-3F},  // which f16 has
                         .groups = {{.pattern = "dense/bias", .frozen = true}},
                         .ranks = ranks,
                         .precision = precision,
                         .seed = 3,
                         .feed = Feed{.samples = images, .labels = labels},
                         .training_set = &testing::toy_set()};
  options.ranks.sync_every = 4;
  options.ranks.compare_every = 1;
  if (change) change(options);
  return Trainer::compile(testing::device(), graph, std::move(options));
}

std::vector<float> weights_of(Trainer& trainer) {
  const std::string names[] = {"conv/weight",  "conv/bias",  "norm/weight",      "norm/bias",
                               "dense/weight", "dense/bias", "norm/running_mean"};
  return testing::all_weights(trainer, names);
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Precision rounded_at_random() {
  Precision precision = Precision::float16();
  precision.moments = DType::f16;
  precision.rounding.optimizer = Rounding::stochastic;
  return precision;
}

/// Copies that operators read do not follow from the masters.
Precision copied_at_random() {
  Precision precision = Precision::mixed();
  precision.rounding.weights = Rounding::stochastic;
  precision.loss_scale.initial = 64;  // which does not overflow
  return precision;
}

}  // namespace

TEST_CASE("ranks that step by themselves have the same weights after each synchronisation, and not in between") {
  for (const Precision& precision : {Precision::float32(), copied_at_random(), rounded_at_random()}) {
    CAPTURE(precision.name);
    const std::vector<WeightsOverTime> got = results_of_ranks<WeightsOverTime>(3, [&](int, const Ranks& ranks) {
      Trainer trainer = trainer_of(ranks, precision);
      WeightsOverTime weights{weights_of(trainer)};
      for (int step = 0; step < 9; ++step) {
        run(trainer, 1);
        weights.push_back(weights_of(trainer));
      }
      return weights;
    });
    for (std::size_t step = 0; step < got[0].size(); ++step) {
      CAPTURE(step);
      CHECK((got[1][step] == got[0][step]) == (step % 4 == 0));
      CHECK((got[2][step] == got[0][step]) == (step % 4 == 0));
    }
    CHECK(got[0][8] != got[0][4]);
    CHECK(got[0][4].back() != got[0][0].back());  // a running statistic: it is a mean, not what it was
  }
}

TEST_CASE("ranks that step by themselves synchronise when they are asked to, once, and keep their turn") {
  const std::vector<WeightsOverTime> got = results_of_ranks<WeightsOverTime>(2, [](int, const Ranks& ranks) {
    const auto counting = std::make_shared<Counting>(ranks.exchange);
    Trainer trainer = trainer_of(Ranks(counting), Precision::float32());
    run(trainer, 6);
    trainer.synchronise();
    const std::size_t exchanged = counting->formats.size();
    trainer.synchronise();
    CHECK(counting->formats.size() == exchanged);
    WeightsOverTime weights{weights_of(trainer)};
    for (; weights.size() < 3; weights.push_back(weights_of(trainer))) run(trainer, 1);  // the eighth is the last
    return weights;
  });
  for (std::size_t i = 0; i < 3; ++i) CHECK((got[0][i] == got[1][i]) == (i != 1));
}

TEST_CASE("nothing is exchanged between two synchronisations, and weights in the wire's format") {
  on_ranks(2, [](int rank, const Ranks& ranks) {
    const auto counting = std::make_shared<Counting>(ranks.exchange);
    Trainer trainer = trainer_of(Ranks(counting), Precision::float32(),
                                 [](TrainerOptions& options) { options.ranks.wire = DType::f16; });
    counting->formats.clear();
    run(trainer, 3);
    const std::vector<DType> before = counting->formats;
    run(trainer, 1);
    if (rank > 0) return;
    CHECK(before.empty());
    CHECK(std::ranges::count(counting->formats, DType::f16) == 5);  // the weights that are trained
    CHECK(std::ranges::count(counting->formats, DType::f32) == 3);  // running statistics, and what is compared
  });
}

TEST_CASE("an overflow on one rank is its own, and so is its loss") {
  std::vector<StepReport> reports(2);
  std::vector<std::vector<float>> weights(2);
  on_ranks(2, [&](int rank, const Ranks& ranks) {
    Precision precision = Precision::mixed();
    precision.loss_scale.initial = 256;
    testing::Pull pull(5, 1, Sgd{.rate = 0.25F}, precision, 5, [&](TrainerOptions& options) {
      options.ranks = ranks;
      options.ranks.sync_every = 2;
      options.ranks.outer_rate = 1;
      options.ranks.outer_momentum = 0;
    });
    pull.step(rank == 0 ? 1.0F : std::numeric_limits<float>::infinity());
    pull.step(1);
    reports[static_cast<std::size_t>(rank)] = pull.trainer().report();
    weights[static_cast<std::size_t>(rank)] = pull.weights();
  });
  CHECK(reports[0].skipped == 0);
  CHECK(reports[1].skipped == 1);
  CHECK(reports[0].loss == 5 * 0.75F);
  CHECK(reports[1].loss == 5);
  CHECK(reports[1].loss_scale < reports[0].loss_scale);
  for (const std::vector<float>& all : weights) CHECK(all == std::vector<float>(5, 1 - (0.5F + 0.25F) / 2));
}

TEST_CASE("weights of the last synchronisation are evaluated and saved, and training goes on with each rank's own") {
  const TemporaryFolder folder;
  for (const Precision& precision : {copied_at_random(), rounded_at_random()}) {
    CAPTURE(precision.name);
    on_ranks(2, [&](int rank, const Ranks& ranks) {
      const auto trained = [&](bool looks) {
        Trainer trainer = trainer_of(ranks, precision);
        run(trainer, 4);
        const Evaluation synchronised = trainer.evaluate(testing::toy_set());
        trainer.save_weights(folder.path() / "synchronised");
        run(trainer, 2);
        if (looks) {
          const Evaluation later = trainer.evaluate(testing::toy_set());
          trainer.save_weights(folder.path() / "later");
          ranks.exchange->barrier();
          if (rank == 0) {
            CHECK(later.loss == synchronised.loss);
            CHECK(later.metrics == synchronised.metrics);
            const io::SafetensorsFile wanted(folder.path() / "synchronised");
            const io::SafetensorsFile got(folder.path() / "later");
            for (const io::StoredTensor& tensor : wanted.tensors()) {
              CHECK(std::ranges::equal(got.find(tensor.name)->data, tensor.data));
            }
          }
          ranks.exchange->barrier();
        }
        run(trainer, 1);
        return weights_of(trainer);
      };
      const std::vector<float> wanted = trained(false);
      const std::vector<float> got = trained(true);
      CHECK(got == wanted);
    });
  }
}

TEST_CASE("a checkpoint has what each rank has of its own, and goes on to the same bits") {
  const TemporaryFolder folder;
  for (const Precision& precision : {copied_at_random(), rounded_at_random()}) {
    for (const int saved : {4, 6}) {  // at a synchronisation, and between two
      CAPTURE(precision.name);
      CAPTURE(saved);
      on_ranks(2, [&](int rank, const Ranks& ranks) {
        Trainer whole = trainer_of(ranks, precision);
        run(whole, saved);
        whole.save(folder.path() / "start");
        run(whole, 9 - saved);
        whole.save(folder.path() / "wanted");
        const std::vector<float> wanted = weights_of(whole);
        Trainer resumed = trainer_of(ranks, precision, [](TrainerOptions& options) { options.seed = 99; });
        run(resumed, 3);
        resumed.load(folder.path() / "start");
        run(resumed, 9 - saved);
        resumed.save(folder.path() / "got");
        const bool same = weights_of(resumed) == wanted;
        CHECK(same);
        ranks.exchange->barrier();
        if (rank == 0) CHECK(text_of(folder.path() / "got") == text_of(folder.path() / "wanted"));
      });
    }
  }
}

TEST_CASE("weights that a checkpoint has in more digits than they had do not move by themselves") {
  const TemporaryFolder folder;
  on_ranks(2, [&](int, const Ranks& ranks) {
    const auto made = [&](const Precision& precision, float rate) {
      return trainer_of(ranks, precision, [&](TrainerOptions& options) {
        options.optimizer = Adam{.rate = rate, .epsilon = 1e-3F};
        options.ranks.outer_momentum = 0;
      });
    };
    Trainer narrow = made(rounded_at_random(), 0.01F);
    run(narrow, 4);
    narrow.save(folder.path() / "start");
    Trainer wide = made(Precision::float32(), 0);
    wide.load(folder.path() / "start");
    const std::vector<float> before = wide.parameter("conv/weight");
    run(wide, 4);
    const bool same = wide.parameter("conv/weight") == before;
    CHECK(same);
  });
}

TEST_CASE("a checkpoint has what each rank has counted, and found as its loss scale") {
  const TemporaryFolder folder;
  std::vector<StepReport> wanted(2);
  std::vector<StepReport> got(2);
  on_ranks(2, [&](int rank, const Ranks& ranks) {
    const auto made = [&] {
      Precision precision = Precision::mixed();
      precision.loss_scale.initial = 256;
      return testing::Pull(5, 1, Sgd{.rate = 0.25F, .momentum = 0.5F}, precision, 5, [&](TrainerOptions& options) {
        options.ranks = ranks;
        options.ranks.sync_every = 2;
      });
    };
    const auto place = static_cast<std::size_t>(rank);
    testing::Pull pull = made();
    pull.step(rank == 0 ? 1.0F : std::numeric_limits<float>::infinity());
    pull.trainer().save(folder.path() / "start");
    pull.trainer().checkpoint().write(folder.path() / std::to_string(rank));
    pull.step(1);
    wanted[place] = pull.trainer().report();
    testing::Pull resumed = made();
    resumed.trainer().load(folder.path() / "start");
    resumed.step(1);
    got[place] = resumed.trainer().report();
  });
  CHECK(wanted[1].loss_scale < wanted[0].loss_scale);
  CHECK(text_of(folder.path() / "0") == text_of(folder.path() / "start"));
  CHECK(text_of(folder.path() / "1") == text_of(folder.path() / "start"));  // rank 0's under the names without a rank
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(got[rank].loss_scale == wanted[rank].loss_scale);
    CHECK(got[rank].skipped == wanted[rank].skipped);
  }
}

TEST_CASE("a checkpoint of ranks that step by themselves goes on with more of them, and with none") {
  const TemporaryFolder folder;
  on_ranks(2, [&](int, const Ranks& ranks) {
    Trainer trainer = trainer_of(ranks, copied_at_random());
    run(trainer, 6);
    trainer.save(folder.path() / "start");
  });
  using WeightsOverTime = std::vector<std::vector<float>>;
  const std::vector<WeightsOverTime> more = results_of_ranks<WeightsOverTime>(3, [&](int, const Ranks& ranks) {
    Trainer trainer = trainer_of(ranks, copied_at_random());
    trainer.load(folder.path() / "start");
    WeightsOverTime weights{weights_of(trainer)};
    run(trainer, 2);
    weights.push_back(weights_of(trainer));
    return weights;
  });
  CHECK(more[0][0] != more[1][0]);
  CHECK(more[2][0] == more[0][0]);  // what rank 0 of 2 had
  for (const WeightsOverTime& weights : more) CHECK(weights[1] == more[0][1]);
  Trainer alone = trainer_of({}, copied_at_random());
  alone.load(folder.path() / "start");
  Trainer weights = trainer_of({}, copied_at_random());
  weights.load_weights(folder.path() / "start");
  CHECK(alone.evaluate(testing::toy_set()).loss == weights.evaluate(testing::toy_set()).loss);  // not a rank's copies
  run(alone, 2);
  alone.save(folder.path() / "alone");
  on_ranks(2, [&](int, const Ranks& ranks) {
    Trainer trainer = trainer_of(ranks, copied_at_random());
    trainer.load(folder.path() / "alone");
    run(trainer, 4);
  });
}

TEST_CASE("weights that are set or loaded are those of a synchronisation") {
  const TemporaryFolder folder;
  on_ranks(2, [&](int, const Ranks& ranks) {
    const auto still = [](TrainerOptions& options) { options.optimizer = Sgd{.rate = 0}; };
    Trainer trainer = trainer_of(ranks, Precision::mixed(), still);
    run(trainer, 1);
    const std::vector<float> wanted(3 * 3 * 6, 0.25F);
    trainer.set_parameter("conv/weight", wanted);
    trainer.save_weights(folder.path() / "weights");
    ranks.exchange->barrier();
    run(trainer, 3);
    const std::vector<float> kept = trainer.parameter("conv/weight");
    CHECK(kept == wanted);
    Trainer other = trainer_of(ranks, Precision::mixed(), still);
    run(other, 1);
    other.load_weights(folder.path() / "weights");
    run(other, 3);
    const std::vector<float> loaded = other.parameter("conv/weight");
    CHECK(loaded == wanted);
  });
}

TEST_CASE("what does not go with local steps is refused, and ranks must agree on them") {
  const auto compiled = [](const Change& change) {
    return results_of_ranks<std::string>(2, [&](int rank, const Ranks& ranks) {
      return error_of([&] {
        trainer_of(ranks, Precision::float32(), [&](TrainerOptions& options) {
          if (rank == 0) options.ranks.outer_rate = 0.7F;
          change(options);
        });
      });
    })[1];
  };
  CHECK(has(compiled([](TrainerOptions& options) { options.ranks.shard_state = true; }), "shard_state"));
  CHECK(has(compiled([](TrainerOptions& options) { options.ema_decay = 0.9F; }), "ema_decay"));
  CHECK(has(compiled([](TrainerOptions& options) { options.ranks.sync_every = -1; }), "sync_every"));
  CHECK(has(compiled([](TrainerOptions& options) { options.ranks.outer_momentum = 1; }), "outer_momentum"));
  const std::vector<std::string> errors = results_of_ranks<std::string>(2, [&](int rank, const Ranks& ranks) {
    return error_of([&] {
      trainer_of(ranks, Precision::float32(), [&](TrainerOptions& options) { options.ranks.sync_every += rank; });
    });
  });
  for (const std::string& error : errors) CHECK(has(error, "synchronisation of weights"));
}

}  // namespace halfstep
