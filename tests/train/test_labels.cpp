#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/values.h"
#include "reference/losses.h"
#include "train/rank_threads.h"

namespace halfstep {

// As 255 is for pixels of no class, where there are 21.
TEST_CASE("a label to ignore need be no class, in a set and from a source") {
  const std::vector<std::uint8_t> values{1, 255, 2, 255};
  const auto losses = [&](std::uint32_t ignore, std::uint32_t bound, bool streamed,
                          std::optional<std::uint32_t> judged) {
    const Dataset set = Dataset::of("pixels", {Field::own("labels", {}, values, bound)});
    const Source source{
        .name = "pixels",
        .fields = {{.name = "labels", .type = ElementType::u8, .bound = bound}},
        .fill = [&](const SourceBatch& to) { std::ranges::copy(values, to.values<std::uint8_t>(0).begin()); }};
    Graph graph;
    const Tensor labels = graph.input("labels", {4}, DType::u32);
    const Tensor logits = graph.root().parameter("logits", {4, 3}, constant(0));
    TrainerOptions options;
    options.loss = cross_entropy(logits, labels, 0, ignore);
    if (judged) options.metrics = {{"accuracy", accuracy(logits, labels, *judged)}};
    options.feed = Feed{.inputs = {{.input = labels}}};
    if (!streamed) options.training_set = &set;
    if (streamed) options.source = &source;
    Trainer trainer = Trainer::compile(testing::device(), graph, options);
    trainer.step();
    trainer.finish();
    trainer.set_parameter("logits", std::vector<float>(12));
    return std::pair{trainer.report().loss, trainer.evaluate(set).loss};
  };
  for (const std::uint32_t bound : {0U, 256U}) {
    for (const bool streamed : {false, true}) {
      const auto [trained, evaluated] = losses(255, bound, streamed, 255);
      CHECK(trained == doctest::Approx(std::log(3.0)));
      CHECK(evaluated == doctest::Approx(std::log(3.0)));
      const auto refused = [&](std::uint32_t ignore, std::optional<std::uint32_t> judged, const char* by) {
        const char* text = streamed ? "expected values below 3 in field 'labels', got 255 in batch 0" : by;
        CHECK_THROWS_WITH_AS(losses(ignore, bound, streamed, judged), doctest::Contains(text), Error);
      };
      refused(254, std::nullopt, "at most 3 classes, as many as cross_entropy has logits, got 256 in 'pixels'");
      refused(255, ignored_label, "at most 3 classes, as many as accuracy has logits, got 256 in 'pixels'");
    }
  }
}

TEST_CASE("labels are those of the losses and metrics that were asked for, whatever others a graph has") {
  const Dataset set = Dataset::of("marks", {Field::own("labels", {}, std::vector<std::uint8_t>{0, 2, 1, 2})});
  const Source source{.name = "marks",
                      .fields = {{.name = "labels", .type = ElementType::u8}},
                      .fill = [](const SourceBatch& to) { std::ranges::fill(to.values<std::uint8_t>(0), 2); }};
  for (const bool streamed : {false, true}) {
    for (const bool asked : {false, true}) {
      Graph graph;
      const Tensor labels = graph.input("labels", {4}, DType::u32);
      const Tensor logits = graph.root().parameter("logits", {4, 3}, constant(0));
      TrainerOptions options{.loss = cross_entropy(logits, labels), .feed = Feed{.inputs = {{.input = labels}}}};
      const Tensor other = accuracy(slice(logits, {0, 0}, {4, 2}), labels);
      if (asked) options.metrics = {{"of two classes", other}};
      if (!streamed) options.training_set = &set;
      if (streamed) options.source = &source;
      const auto loss = [&] {
        Trainer trainer = Trainer::compile(testing::device(), graph, options);
        trainer.step();
        trainer.finish();
        return trainer.report().loss;
      };
      if (!asked) CHECK(loss() == doctest::Approx(std::log(3.0)));
      if (asked) CHECK_THROWS_WITH_AS(loss(), doctest::Contains(streamed ? "below 2" : "at most 2 classes"), Error);
    }
  }
}

namespace {

constexpr std::int64_t places = 3;  ///< of a sample, each with a label
constexpr std::int64_t classes = 4;
constexpr std::uint8_t none = 255;

/// Samples of logits, and of labels, of which fewer count the later the sample is.
struct Places {
  explicit Places(std::int64_t count) : logits(testing::uniform({count * places, classes}, 3, -2, 2)) {
    const std::int64_t rows = count * places;
    for (std::int64_t i = 0; i < rows; ++i) {
      const bool counts = i * 7 % rows >= i;
      labels.push_back(counts ? static_cast<std::uint8_t>(i % classes) : none);
    }
  }

  Dataset set() const {
    std::vector<float> numbers(logits.values.begin(), logits.values.end());
    return Dataset::of("places", {Field::own("logits", {places, classes}, std::move(numbers)),
                                  Field::own("labels", {places}, labels)});
  }
  /// The labels as the references take them.
  reference::Array marked() const {
    reference::Array all({std::ssize(labels)}, std::vector<double>(labels.begin(), labels.end()));
    std::ranges::replace(all.values, double{none}, double{ignored_label});
    return all;
  }

  reference::Array logits;
  std::vector<std::uint8_t> labels;
};

/// A trainer for such sets as `set`, which must outlive it.
Trainer judge(std::int64_t batch, const Dataset& set, const std::function<void(TrainerOptions&)>& change = {},
              const Device& device = testing::device()) {
  Graph graph;
  const Tensor in = graph.input("logits", {batch, places, classes});
  const Tensor all = graph.input("labels", {batch, places}, DType::u32);
  const Tensor w = graph.root().parameter("w", {classes}, constant(0));
  const Tensor logits = bias(reshape(in, {batch * places, classes}), w);
  const Tensor labels = reshape(all, {batch * places});
  const Tensor loss = cross_entropy(logits, labels, 0, none);
  TrainerOptions options{.loss = loss,
                         .metrics = {{"accuracy", accuracy(logits, labels, none)},
                                     {"again", loss},
                                     {"mean", mean(in)},
                                     {"moved", offset(scale(loss, 2), 1)}},
                         .optimizer = Sgd{.rate = 0.5F},
                         .precision = Precision::float32(),
                         .feed = Feed{.inputs = {{.input = in}, {.input = all}}},
                         .training_set = &set};
  if (change) change(options);
  return Trainer::compile(device, graph, options);
}

/// What training comes to: the weights, and of its last step the loss and the metrics.
struct Trained {
  std::vector<float> weights;
  double loss = 0;
  std::map<std::string, float> metrics;

  bool operator==(const Trained&) const = default;
};

Trained trained(Trainer trainer) {
  for (int step = 0; step < 6; ++step) trainer.step();
  trainer.finish();
  CHECK(trainer.report().applied == 6);
  return {trainer.parameter("w"), trainer.report().loss, trainer.report().metrics};
}

}  // namespace

TEST_CASE("an evaluation is a mean over the rows whose labels count, whatever the batch") {
  const Dataset like = Places(48).set();
  for (const std::int64_t batch : {1, 8, 37, 48}) {
    Trainer trainer = judge(batch, like);
    for (const std::int64_t count : {37, 5}) {
      CAPTURE(batch);
      CAPTURE(count);
      const Places set(count);
      const Evaluation got = trainer.evaluate(set.set());
      CHECK(got.samples == count);
      const double loss = reference::cross_entropy(set.logits, set.marked()).values[0];
      CHECK(got.loss == doctest::Approx(loss).epsilon(1e-6));
      CHECK(got.metrics.at("again") == got.loss);
      CHECK(got.metrics.at("moved") == doctest::Approx(2 * loss + 1).epsilon(1e-6));
      const double right = reference::accuracy(set.logits, set.marked()).values[0];
      CHECK(got.metrics.at("accuracy") == doctest::Approx(right).epsilon(1e-6));
      const std::vector<double>& all = set.logits.values;
      const double mean = std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
      CHECK(got.metrics.at("mean") == doctest::Approx(mean).epsilon(1e-5));
    }
  }
}

TEST_CASE("an evaluation over two kinds of rows at once is a mean over the samples") {
  Graph graph;
  const Tensor logits = graph.input("logits", {8, classes});
  const Tensor labels = graph.input("labels", {8}, DType::u32);
  const Tensor w = graph.root().parameter("w", {classes}, constant(0));
  const Tensor loss = add(cross_entropy(bias(logits, w), labels, 0, 2), accuracy(logits, labels, 3));
  Trainer trainer = Trainer::compile(testing::device(), graph,
                                     {.loss = loss,
                                      .precision = Precision::float32(),
                                      .feed = Feed{.inputs = {{.input = logits}, {.input = labels}}}});
  const reference::Array numbers = testing::uniform({16, classes}, 3, -2, 2);
  const auto evaluated = [&](std::ptrdiff_t first, std::ptrdiff_t count) {
    const auto from = numbers.values.begin() + first * classes;
    std::vector<std::uint32_t> kinds;
    for (std::ptrdiff_t i = first; i < first + count; ++i) {  // of the second eight, half or fewer count in each
      kinds.push_back(static_cast<std::uint32_t>(i < 9 ? i % 2 : 2 + i % 2));
    }
    return trainer
        .evaluate(Dataset::of("two", {Field::own("logits", {classes}, std::vector<float>(from, from + count * classes)),
                                      Field::own("labels", {}, std::move(kinds))}))
        .loss;
  };
  CHECK(evaluated(0, 16) == doctest::Approx((evaluated(0, 8) + evaluated(8, 8)) / 2).epsilon(1e-6));
}

TEST_CASE("an evaluation in which no label counts is no number, but for what is no mean over labels") {
  Places set(10);
  std::ranges::fill(set.labels, none);
  const Dataset unlabelled = set.set();
  const Evaluation got = judge(8, unlabelled).evaluate(unlabelled);
  CHECK(got.samples == 10);
  CHECK(std::isnan(got.loss));
  CHECK(std::isnan(got.metrics.at("accuracy")));
  CHECK(std::isfinite(got.metrics.at("mean")));
}

TEST_CASE("micro-batches train as one batch of all their rows that count") {
  const Dataset set = Places(72).set();
  for (Precision precision : {Precision::float32(), Precision::mixed()}) {
    CAPTURE(precision.name);
    const bool narrow = precision.name == "mixed";
    if (narrow) precision.loss_scale = LossScale::fixed(256);
    const auto train = [&](std::int64_t micro_batches) {
      return trained(judge(24 / micro_batches, set, [&](TrainerOptions& options) {
        options.accumulate = micro_batches;
        options.precision = precision;
      }));
    };
    const Trained whole = train(1);
    const double tolerance = narrow ? 2e-3 : 2e-6;
    for (const std::int64_t micro_batches : {2, 8, 24}) {  // of one sample each, some have no label that counts
      CAPTURE(micro_batches);
      const Trained parts = train(micro_batches);
      for (std::size_t i = 0; i < whole.weights.size(); ++i) {
        CHECK(std::abs(parts.weights[i] - whole.weights[i]) < tolerance);
      }
      CHECK(parts.loss == doctest::Approx(whole.loss).epsilon(tolerance));
      for (const auto& [name, value] : whole.metrics) {
        CAPTURE(name);
        CHECK(parts.metrics.at(name) == doctest::Approx(value).epsilon(tolerance));
      }
    }
  }
}

TEST_CASE("losses of other rows each count micro-batches alike") {
  using Labels = std::vector<std::uint32_t>;
  const auto reported = [](std::int64_t micro_batches, const Labels& a, const Labels& b) {
    Graph graph;
    const Tensor logits = graph.root().parameter("logits", {2, classes}, normal(1));
    const auto loss = [&](const char* labels) {
      return cross_entropy(logits, graph.input(labels, {2}, DType::u32), 0, none);
    };
    Trainer trainer = Trainer::compile(
        testing::device(), graph,
        {.loss = add(loss("a"), loss("b")), .accumulate = micro_batches, .precision = Precision::float32(), .seed = 1});
    trainer.step({{"a", std::span<const std::uint32_t>(a)}, {"b", std::span<const std::uint32_t>(b)}});
    trainer.finish();
    return double{trainer.report().loss};
  };
  const double first = reported(1, {0, 1}, {2, 3});
  const double second = reported(1, {none, 1}, {2, 2});
  CHECK(reported(2, {0, 1, none, 1}, {2, 3, 2, 2}) == doctest::Approx((first + second) / 2).epsilon(1e-6));
}

TEST_CASE("a loss that also takes inputs without labels counts micro-batches alike") {
  const auto reported = [](std::int64_t micro_batches, const std::vector<std::uint32_t>& labels,
                           const std::vector<float>& wanted) {
    Graph graph;
    const Tensor logits = graph.root().parameter("logits", {2, classes}, constant(0));
    const Tensor sizes = graph.root().parameter("sizes", {2}, constant(0));
    const Tensor of_labels = cross_entropy(logits, graph.input("labels", {2}, DType::u32), 0, none);
    const Tensor of_sizes = mse_loss(sizes, graph.input("wanted", {2}));
    Trainer trainer = Trainer::compile(testing::device(), graph,
                                       {.loss = add(of_labels, of_sizes),
                                        .optimizer = Sgd{.rate = 1},
                                        .accumulate = micro_batches,
                                        .precision = Precision::float32()});
    trainer.step({{"labels", std::span<const std::uint32_t>(labels)}, {"wanted", std::span<const float>(wanted)}});
    trainer.finish();
    return std::pair{trainer.report().loss, trainer.parameter("sizes")};
  };
  // The derivative of the mean of (0 - wanted)^2 is -wanted for each of two.
  const auto [loss, sizes] = reported(2, {none, none, 1, 2}, {1, 2, 3, 4});
  CHECK(sizes == std::vector<float>{(1 + 3) / 2.0F, (2 + 4) / 2.0F});
  CHECK(loss == doctest::Approx((2.5 + std::log(double{classes}) + 12.5) / 2).epsilon(1e-6));
}

TEST_CASE("ranks train as one process where labels are ignored") {
  const Dataset set = Places(72).set();
  const Trained wanted = trained(judge(3, set, [](TrainerOptions& options) { options.accumulate = 8; }));
  for (const int ranks : {2, 8}) {
    std::vector<Trained> got(static_cast<std::size_t>(ranks));
    testing::on_ranks(ranks, [&](int rank, const Ranks& as) {
      got[static_cast<std::size_t>(rank)] = trained(judge(3, set, [&](TrainerOptions& options) {
        options.accumulate = 8 / ranks;
        options.ranks = as;
      }));
    });
    for (const Trained& result : got) {
      CHECK(result == got.front());
      if (ranks == 8) CHECK(result == wanted);  // two ranks add in another order
      for (std::size_t i = 0; i < wanted.weights.size(); ++i) {
        CHECK(std::abs(result.weights[i] - wanted.weights[i]) < 1e-6);
      }
    }
  }
}

TEST_CASE("more micro-batches than a loop of the driver can count rows of are refused") {
  const Device device = Device::open({}, {.limits = "loop_rounds=100"});
  const Dataset set = Places(202).set();
  const auto compile = [&](std::int64_t micro_batches) {
    judge(
        1, set, [&](TrainerOptions& options) { options.accumulate = micro_batches; }, device);
  };
  compile(100);
  CHECK_THROWS_WITH_AS(compile(101), doctest::Contains("expected at most 100 micro-batches"), Error);
}

TEST_CASE("a step of micro-batches in which no label counts trains nothing, and has a loss of 0") {
  Places places_of_none(24);
  std::ranges::fill(places_of_none.labels, none);
  const Dataset set = places_of_none.set();
  for (const std::int64_t micro_batches : {1, 3}) {
    const Trained got = trained(judge(6, set, [&](TrainerOptions& options) { options.accumulate = micro_batches; }));
    CHECK(got.weights == std::vector<float>(classes));
    CHECK(got.loss == 0);
    CHECK(std::isfinite(got.metrics.at("mean")));
  }
}

}  // namespace halfstep
