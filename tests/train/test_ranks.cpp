// Ranks as threads of this process. tests/dist/ranks.sh has them as processes, over MPI.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/errors.h"
#include "train/rank_threads.h"
#include "train/small_training.h"

namespace halfstep {

using testing::error_of;
using testing::has;

namespace {

struct Result {
  std::vector<float> weights;
  double loss = 0;
  Evaluation test;

  bool operator==(const Result& other) const {
    return weights == other.weights && loss == other.loss && test.loss == other.test.loss &&
           test.metrics == other.test.metrics && test.samples == other.test.samples;
  }
};

testing::ToyOptions toy(const std::function<void(TrainerOptions&)>& change) {
  return {.batch = 4, .dropout = 0.25F, .change = change};
}

Result trained(const testing::ToyOptions& options) {
  Trainer trainer = testing::toy_trainer(testing::toy_set(), options);
  for (int step = 0; step < 12; ++step) trainer.step();
  const double loss = trainer.take_totals().mean_loss;
  return {testing::toy_weights(trainer), loss, trainer.evaluate(testing::toy_set())};
}

/// A rank's exchange that says, while the trainer is compiled, that this rank has another device than rank 0, and once
/// gives it other sums, as another device might compute other means from the same.
class OfOtherDevice final : public testing::PassingExchange {
 public:
  using PassingExchange::PassingExchange;
  void begin_sum(std::span<float> values, const WireFormat& format) override {
    if (gives_others && values.size() > 8) sums_.push_back(values);
    PassingExchange::begin_sum(values, format);
  }
  void wait() override {
    PassingExchange::wait();
    for (const std::span<float> values : std::exchange(sums_, {})) {
      for (float& value : values) value *= 4;
    }
  }
  void broadcast(std::span<std::byte> bytes, int root) override {
    PassingExchange::broadcast(bytes, root);
    if (bytes.size() == 8 && ++hashes_ == 2) bytes.front() ^= std::byte{1};  // the first is of the version
  }

  bool gives_others = false;

 private:
  std::vector<std::span<float>> sums_;
  int hashes_ = 0;
};

}  // namespace

TEST_CASE("ranks train to the bits of one process with as many micro-batches") {
  for (const auto& [ranks, resident, bucket] : {std::tuple{2, 0U, 1}, {3, 1U, 1 << 20}}) {
    for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
      CAPTURE(precision.name);
      testing::ToyOptions alone = toy([&](TrainerOptions& options) { options.accumulate = ranks; });
      alone.precision = precision;
      alone.resident_limit = resident;
      const Result wanted = trained(alone);
      std::vector<Result> got(static_cast<std::size_t>(ranks));
      testing::on_ranks(ranks, [&](int rank, const Ranks& as) {
        testing::ToyOptions part = alone;
        part.change = [&](TrainerOptions& options) {
          options.ranks = as;
          options.ranks.bucket_bytes = bucket;
          options.ranks.compare_every = 5;
        };
        got[static_cast<std::size_t>(rank)] = trained(part);
      });
      for (const Result& result : got) CHECK(result == wanted);
    }
  }
}

TEST_CASE("only states that have next values become the means of the ranks'") {
  using States = std::vector<std::vector<float>>;
  States before;
  std::vector<States> after(3);
  testing::on_ranks(3, [&](int rank, const Ranks& as) {
    Graph graph;
    const Tensor w = graph.root().parameter("w", {3}, constant(1));
    const Tensor x = graph.input("x", {3});
    // Of many numbers, three added and divided by three are another.
    graph.root().state("still", {70}, uniform(1, 2));
    const Tensor moving = graph.root().state("moving", {3}, constant(8));
    graph.root().state("still, too", {70}, uniform(1, 2));
    update(moving, add(moving, x));
    Trainer trainer = Trainer::compile(
        testing::device(), graph,
        {.loss = sum(mul(w, x)), .optimizer = Sgd{.rate = 0.5F}, .ranks = as, .precision = Precision::float32()});
    const auto states = [&] {
      return States{trainer.parameter("still"), trainer.parameter("still, too"), trainer.parameter("moving")};
    };
    if (rank == 0) before = states();
    const std::vector<float> values(3, 1 + static_cast<float>(rank));
    for (int i = 0; i < 2; ++i) trainer.step({{"x", values}});
    after[static_cast<std::size_t>(rank)] = states();
  });
  before.back() = std::vector<float>(3, 8 + 2 * 2);
  for (const States& states : after) CHECK(states == before);
}

TEST_CASE("a gradient that overflows on one rank skips the update on all") {
  Precision precision = Precision::mixed();
  precision.loss_scale.initial = 256;
  std::vector<std::vector<float>> weights(2);
  std::vector<StepReport> reports(2);
  testing::on_ranks(2, [&](int rank, const Ranks& as) {
    const auto change = [&](TrainerOptions& options) { options.ranks = as; };
    testing::Pull pull(5, 1, Sgd{.rate = 0.25F}, precision, 5, change);
    pull.step(rank == 0 ? 1.0F : 3.0F);
    pull.step(rank == 0 ? 1.0F : std::numeric_limits<float>::infinity());
    pull.step(1.0F);
    reports[static_cast<std::size_t>(rank)] = pull.trainer().report();
    weights[static_cast<std::size_t>(rank)] = pull.weights();
  });
  for (std::size_t rank = 0; rank < 2; ++rank) {
    CHECK(weights[rank] == std::vector<float>(5, 0.25F));
    CHECK(reports[rank].skipped == 1);
    CHECK(reports[rank].loss_scale == reports[0].loss_scale);
    CHECK(reports[rank].loss_scale < 256);
  }
}

namespace {

using Change = std::function<void(TrainerOptions&)>;

/// The errors of two ranks whose options these make of the same.
std::vector<std::string> refusals(const Change& first, const Change& second) {
  return testing::results_of_ranks<std::string>(2, [&](int rank, const Ranks& as) {
    const auto here = [&](TrainerOptions& options) {
      options.ranks = as;
      (rank == 0 ? first : second)(options);
    };
    return error_of([&] { static_cast<void>(testing::toy_trainer(testing::toy_set(), toy(here))); });
  });
}

/// Checks that ranks, one of which changed its options so, are refused by an error that names `what`.
void check_refused(const std::string& what, const Change& change) {
  CAPTURE(what);
  for (const std::string& error : refusals([](TrainerOptions&) {}, change)) {
    CHECK(has(error, "[exchange] expected one " + what));
    CHECK(has(error, " on all ranks, got "));
  }
}

}  // namespace

TEST_CASE("ranks that differ are refused, and what differs is named") {
  const Dataset other = testing::toy_dataset(203, {6, 5, 1}, 3, 2);
  Dataset longer = testing::toy_set();
  longer.fields.push_back(Field::own("more", {}, std::vector<std::uint32_t>(203)));
  check_refused("seed", [](TrainerOptions& options) { options.seed = 4; });
  check_refused("optimizer", [](TrainerOptions& options) { options.optimizer = Adam{.rate = 0.02F}; });
  check_refused("training set", [&](TrainerOptions& options) { options.training_set = &other; });
  check_refused("training set", [&](TrainerOptions& options) { options.training_set = &longer; });
  check_refused("number of micro-batches", [](TrainerOptions& options) { options.accumulate = 2; });
  check_refused("loss with its metrics", [](TrainerOptions& options) { options.metrics.clear(); });
  check_refused("recomputation", [](TrainerOptions& options) { options.recompute = "conv"; });
  check_refused("feed", [](TrainerOptions& options) { options.feed->mean = {0.25F}; });
  check_refused("feed", [](TrainerOptions& options) { options.feed->stddev = {0.5F}; });
  check_refused("augmentation", [](TrainerOptions& options) { options.feed->augmentation.flip = 0.5F; });
  check_refused("gradient exchange", [](TrainerOptions& options) { options.ranks.wire = DType::f16; });
  check_refused("gradient exchange", [](TrainerOptions& options) { options.ranks.rounding = Rounding::stochastic; });
  check_refused("comparison of weights", [](TrainerOptions& options) { options.ranks.compare_every = 7; });
}

TEST_CASE("ranks that update weights differently are refused") {
  const std::string setting = "setting of optimizer";
  check_refused(setting, [](TrainerOptions& options) { options.optimizer = Adam{.rate = 0.01F, .beta2 = 0.99F}; });
  check_refused(setting, [](TrainerOptions& options) { options.clip_norm = 1; });
  check_refused(setting, [](TrainerOptions& options) { options.gradient_norm = true; });
  check_refused(setting, [](TrainerOptions& options) { options.groups = {{.pattern = "conv/*", .rate = 0.5F}}; });
  const std::pair<Optimizer, Optimizer> optimizers[] = {
      {Sgd{.momentum = 0.5F}, Sgd{.momentum = 0.5F, .nesterov = true}},
      {RmsProp{}, RmsProp{.centered = true}},
      {Muon{}, Muon{.momentum = 0.9F}},
      {Muon{}, Muon{.nesterov = false}}};
  for (const auto& [one, another] : optimizers) {
    CAPTURE(one->name());
    const std::vector<std::string> errors =
        refusals([&one = one](TrainerOptions& options) { options.optimizer = one; },
                 [&another = another](TrainerOptions& options) { options.optimizer = another; });
    for (const std::string& error : errors) CHECK(has(error, "expected one setting of optimizer"));
  }
  const auto frozen = [](const char* pattern) {
    return [pattern](TrainerOptions& options) { options.groups = {{.pattern = pattern, .frozen = true}}; };
  };
  for (const std::string& error : refusals(frozen("conv/*"), frozen("dense/*"))) {
    CHECK(has(error, "expected one setting of optimizer"));
  }
}

TEST_CASE("ranks that differ in any member of their precision are refused by its name") {
  const auto refused = [](const std::string& what, const std::function<void(Precision&)>& change) {
    check_refused(what, [&](TrainerOptions& options) { change(options.precision); });
  };
  refused("precision", [](Precision& p) { p = Precision::float32(); });
  refused("Precision::weights", [](Precision& p) { p.weights = DType::f16; });
  refused("Precision::parameters", [](Precision& p) { p.parameters = DType::f32; });
  refused("Precision::moments", [](Precision& p) { p.moments = DType::f16; });
  refused("Precision::lists", [](Precision& p) { p.lists.norms = DType::f16; });
  refused("Precision::operators", [](Precision& p) { p.operators["linear"] = DType::f32; });
  refused("Precision::layers", [](Precision& p) { p.layer("conv", DType::f32); });
  refused("Precision::promote", [](Precision& p) { p.promote = true; });
  refused("Precision::partials", [](Precision& p) { p.partials.matmul = DType::f16; });
  refused("Precision::rounding", [](Precision& p) { p.rounding.gradients = Rounding::stochastic; });
  refused("Precision::overflow", [](Precision& p) { p.overflow = Overflow::saturate; });
  refused("Precision::reproducible", [](Precision& p) { p.reproducible = true; });
  refused("Precision::loss_scale", [](Precision& p) { p.loss_scale.interval = 100; });
  refused("Precision::loss_scale", [](Precision& p) { p.loss_scale.floor = 2; });
  refused("Precision::gradient_scales", [](Precision& p) { p.gradient_scales = GradientScales::per_tensor; });
}

TEST_CASE("ranks compare their weights, and name the rank and the tensor that differs") {
  std::vector<std::string> errors(2);
  testing::on_ranks(2, [&](int rank, const Ranks& as) {
    Trainer trainer = testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& options) {
                                             options.ranks = as;
                                             options.ranks.compare_every = 2;
                                           }));
    trainer.step();
    std::vector<float> bias = trainer.parameter("dense/bias");
    bias[1] += 1;
    if (rank == 1) trainer.set_parameter("dense/bias", bias);
    errors[static_cast<std::size_t>(rank)] = error_of([&] { trainer.step(); });
  });
  for (const std::string& error : errors) CHECK(has(error, "another 'dense/bias' on rank 1"));
}

TEST_CASE("a step that tensors are watched in is exchanged like any other") {
  std::vector<Result> got(2);
  std::vector<std::size_t> records(2);
  testing::on_ranks(2, [&](int rank, const Ranks& as) {
    const auto place = static_cast<std::size_t>(rank);
    Trainer trainer =
        testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& options) { options.ranks = as; }));
    if (rank == 0) trainer.inspect().watch("*gradient", 2);
    for (int step = 0; step < 12; ++step) trainer.step();
    const double loss = trainer.take_totals().mean_loss;
    records[place] = trainer.inspect().take_records().size();
    got[place] = {testing::toy_weights(trainer), loss, trainer.evaluate(testing::toy_set())};
  });
  const Result wanted = trained(toy([](TrainerOptions& options) { options.accumulate = 2; }));
  CHECK(got[0] == wanted);
  CHECK(got[1] == wanted);
  CHECK(records[0] > 0);
}

TEST_CASE("an evaluation of sets that differ between ranks is refused on all, and what differs is named") {
  const Dataset& set = testing::toy_set();
  std::vector<Dataset> others(4, set);
  others[0].samples.front() ^= 1;
  others[1].samples.back() ^= 128;
  others[2].labels[77] = (set.labels[77] + 1) % 3;
  others[3] = set.take(202);
  Dataset renamed = set;
  renamed.name = "somewhere else";
  std::vector<std::vector<std::string>> errors(2);
  testing::on_ranks(2, [&](int rank, const Ranks& as) {
    Trainer trainer = testing::toy_trainer(set, toy([&](TrainerOptions& made) { made.ranks = as; }));
    const auto evaluated = [&](const Dataset& other) {
      return error_of([&] { static_cast<void>(trainer.evaluate(rank == 0 ? set : other)); });
    };
    std::vector<std::string>& here = errors[static_cast<std::size_t>(rank)];
    for (const Dataset& other : others) here.push_back(evaluated(other));
    here.push_back(evaluated(renamed));
  });
  CHECK(errors[0] == errors[1]);
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK(has(errors[0][i], "[evaluate] expected one set on all ranks, got 'toy' of 203 samples, checksum"));
    CHECK(has(errors[0][i], fmt::format("'toy' of {} samples, checksum", others[i].count)));
  }
  CHECK(errors[0].back().empty());
}

TEST_CASE("what ranks wait for one another is neither the host's work on a step nor a wait elsewhere") {
  static constexpr std::chrono::milliseconds slow(20);
  class SlowExchange final : public testing::PassingExchange {
   public:
    using PassingExchange::PassingExchange;
    void wait() override {
      std::this_thread::sleep_for(slow);
      PassingExchange::wait();
    }
  };
  for (const bool shard : {false, true}) {
    const auto costs = testing::results_of_ranks<HostCosts>(2, [&](int, const Ranks& as) {
      Trainer trainer = testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& options) {
                                               options.ranks = Ranks(std::make_shared<SlowExchange>(as.exchange));
                                               options.ranks.shard_state = shard;
                                             }));
      for (int step = 0; step < 20; ++step) trainer.step();
      return trainer.inspect().host_costs();
    });
    for (const HostCosts& each : costs) {
      CHECK(each.steps == 20);
      CHECK(each.waits_elsewhere == 0);
      CHECK(each.microseconds_per_step < std::chrono::duration<double, std::micro>(slow).count());
    }
  }
}

TEST_CASE("an evaluation that one rank stops covers the same batches on all, those before it") {
  const auto evaluated = [](const Ranks& ranks, std::int64_t batches) {
    Trainer trainer = testing::toy_trainer(testing::toy_set(), toy([&](TrainerOptions& made) { made.ranks = ranks; }));
    std::int64_t asked = 0;
    return trainer.evaluate(testing::toy_set(), Weights::current, [&] { return asked++ == batches; });
  };
  const auto same = [](const Evaluation& got, const Evaluation& wanted) {
    return got.samples == wanted.samples && got.loss == wanted.loss && got.metrics == wanted.metrics;
  };
  const Evaluation wanted = evaluated({}, 4);
  CHECK(wanted.samples == 16);
  for (const int stopping : {0, 1}) {
    const std::vector<Evaluation> got = testing::results_of_ranks<Evaluation>(
        2, [&](int rank, const Ranks& as) { return evaluated(as, rank == stopping ? 4 : -1); });
    for (const Evaluation& each : got) CHECK(same(each, wanted));
  }
}

TEST_CASE("ranks on different devices go on with what rank 0 has: weights, copies and the scales of gradients") {
  for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
    Precision precision = Precision::mixed();
    precision.gradient_scales = GradientScales::per_tensor;
    precision.rounding.weights = rounding;
    std::string log;
    const auto results = [&](bool differ) {
      return testing::results_of_ranks<std::vector<float>>(2, [&](int rank, const Ranks& as) {
        const auto other = std::make_shared<OfOtherDevice>(as.exchange);
        testing::ToyOptions options = toy([&](TrainerOptions& made) {
          made.ranks = differ && rank == 1 ? Ranks(other) : as;
          if (differ && rank == 0) made.log = [&](std::string_view line) { log += line; };
        });
        options.precision = precision;
        Trainer trainer = testing::toy_trainer(testing::toy_set(), options);
        for (int step = 0; step < 12; ++step) {
          other->gives_others = step == 4;
          trainer.step();
        }
        return testing::toy_weights(trainer);
      });
    };
    CHECK(results(true) == results(false));
    CHECK(has(log, "takes the weights of rank 0"));
  }
}

}  // namespace halfstep
