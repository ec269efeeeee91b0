// Training at several lengths: a graph for each over one store, chosen for each batch.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "train/text_training.h"

namespace halfstep {
namespace {

using testing::run;

constexpr std::int64_t longest = testing::longest_text;
constexpr std::int64_t batch = testing::text_batch;

float furthest(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  float most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

/// The values of samples for a graph of the longest length.
struct Padded {
  Padded(const Dataset& set, std::span<const std::uint32_t> indices) {
    const auto* const all = reinterpret_cast<const std::uint16_t*>(set.fields[0].data.data());
    const auto* const all_labels = reinterpret_cast<const std::uint32_t*>(set.fields[2].data.data());
    for (const std::uint32_t index : indices) {
      tokens.insert(tokens.end(), all + index * longest, all + (index + 1) * longest);
      lengths.push_back(static_cast<std::uint32_t>(set.fields[1].data[index]));
      labels.push_back(all_labels[index]);
    }
  }
  std::map<std::string, Values> values() const {
    return {{"tokens", std::span<const std::uint32_t>(tokens)},
            {"lengths", std::span<const std::uint32_t>(lengths)},
            {"labels", std::span<const std::uint32_t>(labels)}};
  }

  std::vector<std::uint32_t> tokens, lengths, labels;
};

}  // namespace

TEST_CASE("steps in buckets are those of the same batches, padded") {
  const Dataset set = testing::texts(61);
  const std::vector<std::uint32_t> buckets = testing::buckets_of(set);
  for (const std::int64_t accumulate : {1, 2}) {
    for (const std::uint64_t resident_limit : {0U, 1U}) {
      CAPTURE(accumulate);
      CAPTURE(resident_limit);
      const testing::TextSettings settings{.accumulate = accumulate, .resident_limit = resident_limit};
      Trainer in_buckets = testing::text_trainer(set, settings);
      const testing::TextClassifier model(longest, 0);
      Trainer padded = Trainer::compile(testing::device(), model.graph, testing::text_options(model, settings));
      BatchSampler sampler = BatchSampler::training(buckets, batch * accumulate, settings.seed);
      std::set<std::uint32_t> seen;
      for (std::int64_t i = 0; i < 24; ++i) {
        seen.insert(sampler.bucket(i));
        in_buckets.step();
        padded.step(Padded(set, sampler.batch(i)).values());
        in_buckets.finish();
        padded.finish();
        CHECK(in_buckets.report().step == i + 1);
        CHECK(in_buckets.report().loss == doctest::Approx(padded.report().loss).epsilon(1e-5));
        CHECK(in_buckets.report().metrics == padded.report().metrics);
      }
      CHECK(seen.size() == 3);
      CHECK(furthest(testing::text_weights(in_buckets), testing::text_weights(padded)) < 1e-5F);
    }
  }
}

TEST_CASE("steps in buckets and in 16 bits are those of the same batches, padded, up to rounding") {
  const Dataset set = testing::texts(61);
  for (const Precision& precision : {Precision::mixed(), Precision::bfloat16()}) {
    CAPTURE(precision.name);
    const testing::TextSettings settings{.precision = precision};
    Trainer in_buckets = testing::text_trainer(set, settings);
    const testing::TextClassifier model(longest, 0);
    Trainer padded = Trainer::compile(testing::device(), model.graph, testing::text_options(model, settings));
    BatchSampler sampler = BatchSampler::training(testing::buckets_of(set), batch, settings.seed);
    for (std::int64_t i = 0; i < 15; ++i) {
      in_buckets.step();
      padded.step(Padded(set, sampler.batch(i)).values());
    }
    in_buckets.finish();
    padded.finish();
    CHECK(in_buckets.report().applied == padded.report().applied);
    CHECK(furthest(testing::text_weights(in_buckets), testing::text_weights(padded)) < 0.02F);
  }
}

TEST_CASE("an evaluation in buckets is that of padded samples, each of them once") {
  const Dataset set = testing::texts(61);
  const Dataset other = testing::texts(39);
  const testing::TextSettings settings{.change = [](TrainerOptions& made) { made.ema_decay = 0.5F; }};
  Trainer in_buckets = testing::text_trainer(set, settings);
  Trainer padded = testing::text_trainer(set, settings, {});
  const TemporaryFolder folder;
  run(in_buckets, 20);
  in_buckets.save(folder.path() / "trained");
  padded.load(folder.path() / "trained");
  for (const Dataset* each : {&set, &other}) {
    for (const Weights which : {Weights::current, Weights::averaged}) {
      const Evaluation got = in_buckets.evaluate(*each, which);
      const Evaluation want = padded.evaluate(*each, which);
      CHECK(got.samples == each->count);
      CHECK(got.loss == doctest::Approx(want.loss).epsilon(1e-5));
      CHECK(got.metrics.at("accuracy") == doctest::Approx(want.metrics.at("accuracy")));
    }
  }
  int asked = 0;
  CHECK(in_buckets.evaluate(set, Weights::current, [&] { return ++asked > 3; }).samples == 12);
}

TEST_CASE("a run in buckets with dropout that was stopped ends on the same bits") {
  const Dataset set = testing::texts(61);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  Precision noisy = Precision::float16();
  noisy.moments = DType::f16;
  noisy.rounding = {Rounding::stochastic, Rounding::stochastic, Rounding::stochastic, Rounding::stochastic};
  for (const Precision& precision : {Precision::float32(), Precision::mixed(), noisy}) {
    for (const std::uint64_t resident_limit : {0U, 1U}) {
      CAPTURE(precision.name);
      testing::TextSettings settings{.dropout = 0.2F,
                                     .precision = precision,
                                     // f16 keeps no squared averages below 1e-8: their roots are to count for less
                                     .optimizer = AdamW{.rate = Schedule::cosine(0.003F, 5, 60), .epsilon = 1e-3F},
                                     .resident_limit = resident_limit};
      Trainer whole = testing::text_trainer(set, settings);
      run(whole, 40);
      Trainer first = testing::text_trainer(set, settings);
      run(first, 22);  // in the middle of the second epoch
      first.save(file);
      settings.seed = 99;  // the checkpoint's seed is used instead
      Trainer second = testing::text_trainer(set, settings);
      run(second, 5);
      const ResumePoint point = second.load(file);
      CHECK(point.epoch == 1);
      CHECK(point.epoch_step == 7);
      run(second, 18);
      CHECK(testing::text_weights(second) == testing::text_weights(whole));
      CHECK(second.report().step == 40);
      CHECK(std::isfinite(whole.report().loss));
      CHECK(second.report().loss == whole.report().loss);
    }
  }
}

TEST_CASE("another batch size goes on within the epoch, and the epochs after it are those of its own") {
  const Dataset set = testing::texts(64);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint.safetensors";
  Trainer small = testing::text_trainer(set, {});
  run(small, 16 + 8);
  small.save(file);
  Trainer large = testing::text_trainer(set, {.accumulate = 2});
  const ResumePoint point = large.load(file);
  CHECK(point.epoch == 1);
  CHECK(point.epoch_step == 4);
  run(large, 20);
  CHECK(large.report().step == 44);
}

TEST_CASE("a set whose texts are all short, or fewer than a batch in a bucket, is trained in buckets") {
  for (const std::uint8_t length : {std::uint8_t{3}, std::uint8_t{9}, std::uint8_t{24}}) {
    CAPTURE(length);
    Dataset set = testing::texts(10);
    std::vector<std::uint8_t> lengths(10, length);
    lengths[4] = 12;
    set.fields[1] = Field::own("lengths", {}, std::move(lengths));
    Trainer in_buckets = testing::text_trainer(set, {});
    run(in_buckets, 6);
    CHECK(in_buckets.report().step == 6);
    CHECK(in_buckets.evaluate(set).samples == 10);
  }
}

TEST_CASE("the start of f32 samples is read, normalised, from fields with a stride") {
  std::vector<float> values{0, 0};
  std::vector<std::uint16_t> counts;
  std::vector<std::uint32_t> labels;
  for (std::int64_t i = 0; i < 30; ++i) {
    counts.push_back(static_cast<std::uint16_t>(1 + testing::drawn("count", i, 9)));
    labels.push_back(testing::drawn("class", i, 4));
    for (std::int64_t j = 0; j < 28; ++j) {  // 9 points of 3, and one that is skipped
      values.push_back(j < 3 * counts.back() ? static_cast<float>(testing::drawn("value", 28 * i + j, 16)) / 8 - 1 : 0);
    }
  }
  Field points = Field::own("points", {9, 3}, std::move(values));
  points.first = 2;
  points.stride = 28;
  const Dataset set = Dataset::of("points", {std::move(points), Field::own("counts", {1}, std::move(counts)),
                                             Field::own("labels", {}, std::move(labels))});
  for (const std::uint64_t resident_limit : {0U, 1U}) {
    CAPTURE(resident_limit);
    const testing::PointModel model(9);
    const testing::PointModel few(4);
    TrainerOptions options{.loss = model.loss, .precision = Precision::float32()};
    options.feed = model.feed();
    options.buckets = Buckets{.field = "counts",
                              .longest = 9,
                              .shorter = {{.length = 4, .graph = &few.graph, .loss = few.loss, .feed = few.feed()}}};
    options.training_set = &set;
    options.resident_limit = resident_limit;
    Trainer in_buckets = Trainer::compile(testing::device(), model.graph, options);
    options.buckets->shorter.clear();  // all of one bucket, in the order that there is without
    Trainer padded = Trainer::compile(testing::device(), model.graph, options);
    CHECK(in_buckets.evaluate(set).loss == doctest::Approx(padded.evaluate(set).loss).epsilon(1e-6));
    run(in_buckets, 25);
    CHECK(in_buckets.evaluate(set).loss < padded.evaluate(set).loss);
  }
}

namespace {

/// A loss that is a state as each micro-batch reads it, which the graph may count up.
struct Counter {
  Counter(std::int64_t count, bool moves) : points(graph.input("points", {batch, count, 3})) {
    const Tensor w = graph.root().parameter("w", {3}, constant(0));
    const Tensor read = graph.root().state("read", {}, constant(0));
    if (moves) update(read, offset(read, 1));
    loss = add(mean(mul(points, w)), read);
  }
  Feed feed() const { return {.inputs = {{.input = points}}}; }

  Graph graph;
  Tensor points, loss;
};

}  // namespace

TEST_CASE("micro-batches of a bucket that does not update a state read what the last step left") {
  std::vector<std::uint16_t> counts;
  for (int i = 0; i < 32; ++i) counts.push_back(i % 2 == 0 ? 9 : 4);
  const Dataset set = Dataset::of("points", {Field::own("points", {9, 3}, std::vector<float>(std::size_t{32} * 27)),
                                             Field::own("counts", {1}, std::move(counts))});
  const Counter counting(9, true);
  const Counter reading(4, false);
  Trainer trainer = Trainer::compile(
      testing::device(), counting.graph,
      {.loss = counting.loss,
       .optimizer = Sgd{.rate = 0},
       .accumulate = 2,
       .precision = Precision::float32(),
       .feed = counting.feed(),
       .buckets =
           Buckets{.field = "counts",
                   .longest = 9,
                   .shorter = {{.length = 4, .graph = &reading.graph, .loss = reading.loss, .feed = reading.feed()}}},
       .training_set = &set});
  float state = 0;
  for (int i = 0; i < 12; ++i) {
    run(trainer, 1);
    trainer.finish();
    const float read = trainer.report().loss;
    const bool counts_up = read != std::floor(read);
    CHECK(read == (counts_up ? state + 0.5F : state));  // the mean of two micro-batches
    if (counts_up) state += 2;
    CHECK(trainer.parameter("read") == std::vector<float>{state});
  }
  CHECK(state == 12);  // half of the steps
}

TEST_CASE("the recorder sees the steps of every bucket") {
  const Dataset set = testing::texts(61);
  Trainer in_buckets = testing::text_trainer(set, {});
  BatchSampler sampler = BatchSampler::training(testing::buckets_of(set), batch, 3);
  in_buckets.inspect().watch("bert/encoder/layer/0/output/dense/*");
  run(in_buckets, 15);
  std::vector<TensorStatistics> records = in_buckets.inspect().take_records();
  REQUIRE(!records.empty());
  const std::string name = records.front().name;
  std::erase_if(records, [&](const TensorStatistics& record) { return record.name != name; });
  REQUIRE(records.size() == 15);
  Trainer traced = testing::text_trainer(set, {.change = [&](TrainerOptions& made) { made.trace = name; }});
  std::set<std::size_t> lengths;
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].step == i + 1);
    const std::size_t length = std::vector<std::size_t>{7, 12, 24}[sampler.bucket(static_cast<std::int64_t>(i))];
    lengths.insert(length);
    CHECK(records[i].elements == batch * length * 16);
    traced.step();
    CHECK(traced.inspect().trace(name).size() == batch * length * 16);
  }
  CHECK(lengths.size() == 3);
  CHECK(testing::text_weights(traced) == testing::text_weights(in_buckets));
  CHECK_THROWS_WITH_AS(in_buckets.inspect().profile(1), doctest::Contains("got one with buckets"), Error);
}

}  // namespace halfstep
