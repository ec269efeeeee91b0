// Ranks that share out what their optimizers keep.
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
#include "models/layers.h"
#include "train/pulled_tensors.h"
#include "train/rank_threads.h"
#include "train/scaled_gradients.h"
#include "train/small_training.h"

namespace halfstep {

using testing::error_of;

namespace {

using Change = std::function<void(TrainerOptions&)>;

/// Gives each rank no more than what it asks for: numbers that are not its own are lost.
class Scattering final : public testing::PassingExchange {
 public:
  using PassingExchange::PassingExchange;

  void begin_scattered_sum(std::span<float> values, std::span<const std::size_t> ends,
                           const WireFormat& format) override {
    begin_sum(values, format);
    const auto own = static_cast<std::size_t>(rank());
    lost_.push_back(values.first(own == 0 ? 0 : ends[own - 1]));
    lost_.push_back(values.subspan(ends[own]));
  }
  void wait() override {
    PassingExchange::wait();
    for (const std::span<float> values : lost_) std::ranges::fill(values, std::numeric_limits<float>::quiet_NaN());
    lost_.clear();
  }

 private:
  std::vector<std::span<float>> lost_;
};

struct Case {
  const char* name;
  int ranks;
  std::int64_t bucket_bytes;
  Precision precision;
  Change change;
};

/// With a norm, whose parameters operators read in f32, and running statistics.
Trainer trainer_of(const Case& of, const Ranks& ranks, bool sharded) {
  Graph graph;
  constexpr std::int64_t batch = 4;
  const Tensor images = graph.input("images", {batch, 6, 5, 1});
  const Tensor labels = graph.input("labels", {batch}, DType::u32);
  const Tensor hidden =
      relu(models::batch_norm(graph.root() / "norm", models::same_conv(graph.root() / "conv", images, 6, 3)));
  const Tensor wide = relu(models::dense(graph.root() / "wide", dropout(flatten(max_pool2d(hidden)), 0.25F), 37));
  const Tensor logits = models::dense(graph.root() / "dense", wide, 3);
  TrainerOptions options{.loss = cross_entropy(logits, labels),
                         .metrics = {{"accuracy", accuracy(logits, labels)}},
                         .optimizer = Adam{.rate = 0.01F},
                         .precision = of.precision,
                         .seed = 3,
                         .feed = Feed{.samples = images, .labels = labels},
                         .training_set = &testing::toy_set()};
  if (of.change) of.change(options);
  options.ranks = ranks;
  options.ranks.bucket_bytes = of.bucket_bytes;
  options.ranks.compare_every = 5;
  if (sharded) options.ranks.exchange = std::make_shared<Scattering>(ranks.exchange);
  options.ranks.shard_state = sharded;
  return Trainer::compile(testing::device(), graph, std::move(options));
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// A checkpoint says it all: weights, moments, states, scales and counters.
struct Result {
  std::string checkpoint;
  double loss = 0;
  double test_loss = 0;
  std::uint64_t skipped = 0;
  PlanSummary summary{};
};

constexpr int steps = 12;

Result trained(Trainer& trainer, const std::filesystem::path& file) {
  for (int step = 0; step < steps; ++step) trainer.step();
  Result result;
  result.loss = trainer.take_totals().mean_loss;
  result.test_loss = trainer.evaluate(testing::toy_set()).loss;
  result.skipped = trainer.report().skipped;
  result.summary = trainer.inspect().summary();
  trainer.save(file);
  result.checkpoint = text_of(file);
  return result;
}

std::vector<Result> trained(const Case& of, bool sharded, const std::filesystem::path& folder) {
  return testing::results_of_ranks<Result>(of.ranks, [&](int rank, const Ranks& ranks) {
    Trainer trainer = trainer_of(of, ranks, sharded);
    return trained(trainer, folder / std::to_string(rank));
  });
}

Precision rounded_at_random() {
  Precision precision = Precision::float16();
  precision.moments = DType::f16;
  precision.rounding.optimizer = Rounding::stochastic;
  return precision;
}

void two_optimizers(TrainerOptions& options) {
  options.optimizer = AdamW{.rate = 0.01F};
  options.decay_vectors = false;
  options.groups = {{.pattern = "conv/*", .optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F}},
                    {.pattern = "dense/bias", .frozen = true}};
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"f32", 2, 1, Precision::float32(), [](TrainerOptions& options) { options.clip_norm = 0.5F; }},
      {"f16, rounded at random", 3, 1 << 20, rounded_at_random(),
       [](TrainerOptions& options) { options.weight_limit = 0.3F; }},
      {"mixed, with overflows", 2, 2000, testing::overflowing(),
       [](TrainerOptions& options) {
         two_optimizers(options);
         options.clip_norm = 0.25F;
         options.weight_limit = 0.2F;
       }},
      {"scales of gradients", 2, 1 << 20, testing::scaled(),
       [](TrainerOptions& options) { options.clip_norm = 0.25F; }},
      {"bf16", 3, 1, Precision::bfloat16(), two_optimizers}};
  return all;
}

}  // namespace

TEST_CASE("ranks that share out what optimizers keep train to the same bits") {
  const TemporaryFolder folder;
  for (const Case& of : cases()) {
    CAPTURE(of.name);
    const std::vector<Result> wanted = trained(of, false, folder.path());
    const std::vector<Result> got = trained(of, true, folder.path());
    CHECK(!wanted[0].checkpoint.empty());
    CHECK(got[0].checkpoint == wanted[0].checkpoint);
    CHECK((wanted[0].skipped > 0) == (std::string(of.name) == "mixed, with overflows"));
    for (const Result& result : got) {
      CHECK(result.loss == wanted[0].loss);
      CHECK(result.test_loss == wanted[0].test_loss);
      CHECK(result.skipped == wanted[0].skipped);
    }
  }
}

TEST_CASE("a gradient that overflows in another rank's part skips the update of every part") {
  const std::vector<std::vector<float>> weights =
      testing::results_of_ranks<std::vector<float>>(2, [](int, const Ranks& ranks) {
        TrainerOptions options;
        options.optimizer = Sgd{.rate = 0.25F};
        options.precision = Precision::mixed();
        options.precision.loss_scale.initial = 256;
        options.ranks = ranks;
        options.ranks.shard_state = true;
        testing::PulledTensors tensors({{"w", {512}, 1}}, options);
        std::vector<float> pulls(512, 1);
        tensors.step({{"w", pulls}});
        pulls[3] = std::numeric_limits<float>::infinity();
        tensors.step({{"w", pulls}});
        CHECK(tensors.trainer().report().skipped == 1);
        return tensors.trainer().parameter("w");
      });
  for (const std::vector<float>& all : weights) CHECK(all == std::vector<float>(512, 0.75F));
}

TEST_CASE("a checkpoint of shared-out state goes on with any number of ranks, shared out or not, and so does another") {
  const TemporaryFolder folder;
  Case of = cases()[2];
  const std::filesystem::path start = folder.path() / "start";
  const std::vector<Result> wanted = trained(of, true, folder.path());
  testing::on_ranks(of.ranks, [&](int rank, const Ranks& ranks) {
    Trainer trainer = trainer_of(of, ranks, true);
    for (int step = 0; step < 5; ++step) trainer.step();
    trainer.save(rank == 0 ? start : folder.path() / "nobody");
  });
  CHECK(!std::filesystem::exists(folder.path() / "nobody"));
  for (const int count : {2, 3}) {
    std::vector<std::string> ends;
    for (const bool sharded : {true, false}) {
      of.ranks = count;
      testing::on_ranks(count, [&](int rank, const Ranks& ranks) {
        Trainer trainer = trainer_of(of, ranks, sharded);
        trainer.step();
        trainer.load(start);
        for (int step = 5; step < steps; ++step) trainer.step();
        trainer.save(folder.path() / "end");
        if (rank == 0) ends.push_back(text_of(folder.path() / "end"));
      });
    }
    CHECK(ends[0] == ends[1]);
    CHECK((ends[0] == wanted[0].checkpoint) == (count == 2));
  }
}

TEST_CASE("weights that are shared out are read, set and loaded whole") {
  const TemporaryFolder folder;
  const Case& of = cases()[2];
  testing::on_ranks(of.ranks, [&](int rank, const Ranks& ranks) {
    Trainer trainer = trainer_of(of, ranks, true);
    std::vector<float> weights = trainer.parameter("wide/weight");
    for (float& weight : weights) weight = 0.5F + weight / 3;
    trainer.set_parameter("wide/weight", weights);
    const std::vector<float> read = trainer.parameter("wide/weight");
    trainer.save_weights(folder.path() / "weights");
    ranks.exchange->barrier();
    Trainer other = trainer_of(of, ranks, true);
    other.load_weights(folder.path() / "weights");
    const std::vector<float> loaded = other.parameter("wide/weight");
    ranks.exchange->barrier();
    if (rank == 0) {
      CHECK(read == weights);
      CHECK(loaded == weights);
    }
  });
}

TEST_CASE("ranks that share out state take a part of its memory each, as the plan says") {
  const TemporaryFolder folder;
  for (const Case& of : cases()) {
    CAPTURE(of.name);
    const auto compiled = [&](bool sharded) {
      return testing::results_of_ranks<std::pair<PlanSummary, std::string>>(of.ranks, [&](int, const Ranks& ranks) {
        const Trainer trainer = trainer_of(of, ranks, sharded);
        return std::pair{trainer.inspect().summary(), trainer.inspect().plan()};
      });
    };
    const PlanSummary whole = compiled(false)[0].first;
    const auto count = static_cast<std::uint64_t>(of.ranks);
    std::uint64_t sum = 0;
    for (const auto& [summary, plan] : compiled(true)) {
      sum += summary.optimizer_bytes;
      // Where buckets are small, so are parts, and a block of 128 elements may be one too many.
      const std::uint64_t blocks = 8 * 128 * 2 * 4;
      CHECK(summary.optimizer_bytes <= whole.optimizer_bytes / count + (of.bucket_bytes == 1 ? blocks : blocks / 4));
      CHECK(plan.find(std::to_string(summary.optimizer_bytes) + " bytes of optimizer state") != std::string::npos);
      CHECK(plan.find("of this rank's part, 1 of " + std::to_string(of.ranks)) != std::string::npos);
      CHECK(summary.weight_bytes <= whole.weight_bytes);
      CHECK((summary.weight_bytes < whole.weight_bytes) == (of.precision.weights != of.precision.parameters));
      // What was allocated is smaller by what the plan says, but for a state and two words for each block.
      const std::uint64_t saved =
          whole.weight_bytes + whole.optimizer_bytes - summary.weight_bytes - summary.optimizer_bytes;
      const std::uint64_t allocated =
          (whole.peak_bytes - whole.arena_bytes) - (summary.peak_bytes - summary.arena_bytes);
      CHECK(saved >= allocated);
      CHECK(saved - allocated <= 3 * 256);
    }
    CHECK(sum == whole.optimizer_bytes);
  }
}

TEST_CASE("what cannot be shared out is refused, and ranks must agree on it") {
  const auto compiled = [](const Change& change) {
    Case of = cases()[0];
    of.change = change;
    return testing::results_of_ranks<std::string>(
        2, [&](int, const Ranks& ranks) { return error_of([&] { trainer_of(of, ranks, true); }); })[1];
  };
  CHECK(compiled([](TrainerOptions& options) { options.ema_decay = 0.9F; }).find("ema_decay") != std::string::npos);
  CHECK(compiled([](TrainerOptions& options) { options.optimizer = Muon{}; }).find("muon") != std::string::npos);
  const std::vector<std::string> errors = testing::results_of_ranks<std::string>(
      2, [&](int rank, const Ranks& ranks) { return error_of([&] { trainer_of(cases()[0], ranks, rank == 0); }); });
  for (const std::string& error : errors) CHECK(error.find("sharing of the optimizer's state") != std::string::npos);
}

}  // namespace halfstep
