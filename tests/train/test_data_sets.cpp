#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

constexpr std::int64_t batch = 6;
constexpr std::int64_t features = 5;
constexpr std::int64_t classes = 7;
constexpr std::uint64_t seed = 4;

/// Rows of features with a label of u16 each.
Dataset table(std::int64_t rows) {
  std::mt19937 random(3);
  std::vector<float> x;
  std::vector<std::uint16_t> y;
  for (std::int64_t i = 0; i < rows * features; ++i) x.push_back(static_cast<float>(random() % 64) / 8 - 4);
  for (std::int64_t i = 0; i < rows; ++i) y.push_back(static_cast<std::uint16_t>(random() % classes));
  return Dataset::of("table", {Field::own("x", {features}, std::move(x)), Field::own("y", {}, std::move(y))});
}

/// The same rows, filled by an application.
Source source_of(const Dataset& set) {
  return {
      .name = "rows",
      .count = set.count,
      .fields = {{.name = "y", .type = ElementType::u16}, {.name = "x", .type = ElementType::f32, .shape = {features}}},
      .fill = [&set](const SourceBatch& to) {
        const auto* x = reinterpret_cast<const float*>(set.fields[0].data.data());
        const auto* y = reinterpret_cast<const std::uint16_t*>(set.fields[1].data.data());
        for (std::size_t b = 0; b < to.indices.size(); ++b) {
          std::copy_n(x + to.indices[b] * features, features, to.values<float>(1).data() + b * features);
          to.values<std::uint16_t>(0)[b] = y[to.indices[b]];
        }
      }};
}

/// Makes the batch visible: a step with a rate of 1 subtracts the features from w, and adds one over the batch to the
/// label's column of v, less the softmax.
Trainer glass(const std::function<void(TrainerOptions&)>& change, std::int64_t wide = batch) {
  Graph graph;
  const Tensor x = graph.input("x", {wide, features});
  const Tensor y = graph.input("y", {wide}, DType::u32);
  const Tensor w = graph.root().parameter("w", {wide, features}, constant(0));
  const Tensor v = graph.root().parameter("v", {wide, classes}, constant(0));
  Precision precision = Precision::float32();
  precision.loss_scale = LossScale::none();
  TrainerOptions options{.loss = add(sum(mul(w, x)), cross_entropy(v, y)),
                         .optimizer = Sgd{.rate = 1},
                         .precision = precision,
                         .seed = seed,
                         .feed = Feed{.inputs = {{.input = x}, {.input = y}}}};
  change(options);
  return Trainer::compile(testing::device(), graph, std::move(options));
}

std::vector<float> weights(Trainer& trainer) {
  const std::string names[] = {"w", "v"};
  return testing::all_weights(trainer, names);
}

std::vector<float> weights_after(Trainer trainer, int steps) {
  for (int i = 0; i < steps; ++i) trainer.step();
  return weights(trainer);
}

}  // namespace

TEST_CASE("features and labels of several fields are those of the samples that were drawn") {
  const Dataset set = table(40);
  for (const std::uint64_t limit : {0U, 1U}) {
    Trainer trainer = glass([&](TrainerOptions& options) {
      options.training_set = &set;
      options.resident_limit = limit;
    });
    CHECK((trainer.inspect().summary().data_bytes > 0) == (limit == 0));
    trainer.step();
    const std::vector<float> w = trainer.parameter("w");
    const std::vector<float> v = trainer.parameter("v");
    BatchSampler sampler = BatchSampler::training(set.count, batch, seed);
    const auto indices = sampler.batch(0);
    const auto* x = reinterpret_cast<const float*>(set.fields[0].data.data());
    const auto* y = reinterpret_cast<const std::uint16_t*>(set.fields[1].data.data());
    for (std::size_t b = 0; b < batch; ++b) {
      for (std::size_t f = 0; f < features; ++f) CHECK(w[b * features + f] == -x[indices[b] * features + f]);
      const auto row = std::span(v).subspan(b * classes, classes);
      CHECK(std::ranges::max_element(row) - row.begin() == y[indices[b]]);
      CHECK(row[y[indices[b]]] == doctest::Approx(6.0 / 7 / batch));
    }
  }
}

TEST_CASE("a set on the device, one that is streamed and a source train alike, in micro-batches too") {
  const Dataset set = table(40);
  const Source source = source_of(set);
  for (const std::int64_t accumulate : {1, 3}) {
    const auto after = [&](const std::function<void(TrainerOptions&)>& change) {
      return weights_after(glass([&](TrainerOptions& options) {
                             options.accumulate = accumulate;
                             change(options);
                           }),
                           20);
    };
    const std::vector<float> resident = after([&](TrainerOptions& options) { options.training_set = &set; });
    CHECK(resident == after([&](TrainerOptions& options) {
            options.training_set = &set;
            options.resident_limit = 1;
          }));
    CHECK(resident == after([&](TrainerOptions& options) { options.source = &source; }));
  }
}

TEST_CASE("means and deviations of features are those of their channels, on the device and streamed") {
  const Dataset set = table(40);
  std::vector<std::vector<float>> seen;
  for (const std::uint64_t limit : {0U, 1U}) {
    seen.push_back(weights_after(glass([&](TrainerOptions& options) {
                                   options.training_set = &set;
                                   options.resident_limit = limit;
                                   options.feed->inputs[0].mean = {1, 2, 3, 4, 5};
                                   options.feed->inputs[0].stddev = {0.5F, 1, 2, 4, 8};
                                 }),
                                 1));
  }
  CHECK(seen[0] == seen[1]);
  BatchSampler sampler = BatchSampler::training(set.count, batch, seed);
  const auto indices = sampler.batch(0);
  const auto* x = reinterpret_cast<const float*>(set.fields[0].data.data());
  for (std::size_t i = 0; i < batch * features; ++i) {
    const std::size_t f = i % features;
    const float want =
        (x[indices[i / features] * features + f] - static_cast<float>(f + 1)) / std::exp2(static_cast<float>(f) - 1);
    CHECK(seen[0][i] == -want);
  }
}

TEST_CASE("every sample is evaluated once where no loss leaves out a place, whatever the batch") {
  const Dataset set = table(37);
  const auto* x = reinterpret_cast<const float*>(set.fields[0].data.data());
  double want = 0;
  for (std::size_t i = 0; i < 37 * features; ++i)
    want += std::pow(static_cast<double>(x[i]) - 0.5, 2) / (37 * features);
  for (const std::int64_t wide : {1, 8, 37, 48}) {
    Graph graph;
    const Tensor in = graph.input("features", {wide, features});
    const Tensor w = graph.root().parameter("w", {features}, constant(0.5F));
    Trainer trainer = Trainer::compile(testing::device(), graph,
                                       {.loss = mse_loss(in, bias(scale(in, 0), w)),
                                        .optimizer = Sgd{.rate = 1},
                                        .precision = Precision::float32(),
                                        .feed = Feed{.inputs = {{.input = in, .field = "x"}}}});
    const Evaluation got = trainer.evaluate(set);
    CHECK(got.samples == 37);
    CHECK(got.loss == doctest::Approx(want).epsilon(1e-5));
  }
}

TEST_CASE("a source without an end is asked for batches by number, and a resumed run goes on with the next") {
  const TemporaryFolder folder;
  std::vector<std::int64_t> numbers;
  Source source{.name = "endless",
                .fields = {{.name = "x", .type = ElementType::f32, .shape = {features}},
                           {.name = "y", .type = ElementType::u8, .bound = classes}},
                .fill = [&](const SourceBatch& to) {
                  CHECK(to.indices.empty());
                  numbers.push_back(to.number);
                  for (float& value : to.values<float>(0)) value = static_cast<float>(to.number + 1);
                  for (std::uint8_t& value : to.values<std::uint8_t>(1)) {
                    value = static_cast<std::uint8_t>(to.number % classes);
                  }
                }};
  const auto change = [&](TrainerOptions& options) { options.source = &source; };
  std::vector<float> whole = weights_after(glass(change), 9);
  CHECK(whole[0] == -45);
  CHECK(numbers.size() >= 9);
  CHECK(numbers.size() <= 12);
  for (std::size_t i = 0; i < numbers.size(); ++i) CHECK(numbers[i] == static_cast<std::int64_t>(i));
  {
    Trainer first = glass(change);
    for (int i = 0; i < 5; ++i) first.step();
    first.save(folder.path() / "checkpoint");
  }
  numbers.clear();
  {
    Trainer second = glass(change);
    const ResumePoint point = second.load(folder.path() / "checkpoint");
    CHECK(point.step == 5);
    for (int i = 0; i < 4; ++i) second.step();
    CHECK(weights(second) == whole);
  }
  CHECK(std::ranges::find(numbers, 5) != numbers.end());  // nobody fills ahead any more
}

TEST_CASE("a run from a source with a count resumes in the same order") {
  const TemporaryFolder folder;
  const Dataset set = table(40);
  const Source source = source_of(set);
  const auto change = [&](TrainerOptions& options) { options.source = &source; };
  const std::vector<float> whole = weights_after(glass(change), 15);
  {
    Trainer first = glass(change);
    for (int i = 0; i < 8; ++i) first.step();
    first.save(folder.path() / "checkpoint");
  }
  Trainer second = glass(change);
  const ResumePoint point = second.load(folder.path() / "checkpoint");
  CHECK(point.epoch == 1);
  CHECK(point.epoch_step == 2);
  for (int i = 0; i < 7; ++i) second.step();
  CHECK(weights(second) == whole);
}

TEST_CASE("what a source throws is an error of step(), after the batches before it, until the run is resumed") {
  const TemporaryFolder folder;
  const Dataset set = table(40);
  const Source good = source_of(set);
  bool broken = true;
  Source source = good;
  const auto throws = [&](const std::function<void(const SourceBatch&)>& fault, const char* message) {
    broken = true;
    source.fill = [&](const SourceBatch& to) {
      good.fill(to);
      if (to.number >= 3 && broken) fault(to);
    };
    Trainer trainer = glass([&](TrainerOptions& options) { options.source = &source; });
    for (int i = 0; i < 3; ++i) trainer.step();
    trainer.save(folder.path() / "checkpoint");
    for (int i = 0; i < 2; ++i) CHECK_THROWS_WITH_AS(trainer.step(), doctest::Contains(message), Error);
    trainer.finish();
    CHECK(trainer.report().step == 3);
    broken = false;
    trainer.load(folder.path() / "checkpoint");
    trainer.step();
    trainer.finish();
    CHECK(trainer.report().step == 4);
  };
  throws([](const SourceBatch&) { throw std::runtime_error("the disk is gone"); },
         "[source] 'rows': expected batch 3, got an exception: the disk is gone");
  throws([](const SourceBatch&) { throw 7; },
         "[source] 'rows': expected batch 3, got an exception: of an unknown type");
  throws([](const SourceBatch& to) { to.values<float>(0); }, "[source] expected field 0 to be of f32, got u16");
  throws([](const SourceBatch& to) { to.values<std::uint16_t>(0)[2] = classes; },
         "[source] 'rows': expected values below 7 in field 'y', got 7 in batch 3");
}

TEST_CASE("step() waits for a slow source, and the trainer ends while it is asked for a batch") {
  const Dataset set = table(40);
  const Source good = source_of(set);
  Source source = good;
  source.fill = [&](const SourceBatch& to) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    good.fill(to);
  };
  Trainer slow = glass([&](TrainerOptions& options) { options.source = &source; });
  for (int i = 0; i < 6; ++i) slow.step();
  CHECK(slow.inspect().host_costs().waits_for_batch > 0);
  CHECK(weights(slow) == weights_after(glass([&](TrainerOptions& options) { options.training_set = &set; }), 6));
}

TEST_CASE("windows of a memory-mapped text train alike on the device and streamed, and the text is there once") {
  const TemporaryFolder folder;
  constexpr std::int64_t length = 5;
  constexpr std::int64_t count = 1001;
  std::vector<std::uint16_t> text;
  std::mt19937 random(3);
  for (std::int64_t i = 0; i < count; ++i) text.push_back(static_cast<std::uint16_t>(random() % 11));
  std::ofstream(folder.path() / "text", std::ios::binary)
      .write(reinterpret_cast<const char*>(text.data()), std::ssize(text) * 2);
  const Dataset set = read_tokens(folder.path() / "text", {.length = length, .vocabulary = 11, .stride = 3});
  CHECK(set.count == (count - 1 - length) / 3 + 1);
  std::vector<std::vector<float>> seen;
  for (const std::uint64_t limit : {0U, 1U}) {
    Graph graph;
    const Tensor tokens = graph.input("tokens", {batch, length}, DType::u32);
    const Tensor targets = graph.input("targets", {batch, length}, DType::u32);
    const Tensor a = graph.root().parameter("a", {batch * length, 11}, constant(0));
    const Tensor b = graph.root().parameter("b", {batch * length, 11}, constant(0));
    Precision precision = Precision::float32();
    precision.loss_scale = LossScale::none();
    Trainer trainer = Trainer::compile(
        testing::device(), graph,
        {.loss = add(cross_entropy(a, reshape(tokens, {-1})), cross_entropy(b, reshape(targets, {-1}))),
         .optimizer = Sgd{.rate = 1},
         .precision = precision,
         .seed = seed,
         .feed = Feed{.inputs = {{.input = tokens}, {.input = targets}}},
         .training_set = &set,
         .resident_limit = limit});
    if (limit == 0) CHECK(trainer.inspect().summary().data_bytes < 2 * 2 * count);
    trainer.step();
    BatchSampler sampler = BatchSampler::training(set.count, batch, seed);
    const auto indices = sampler.batch(0);
    for (std::size_t i = 0; i < batch * length; ++i) {
      const std::size_t at = 3 * indices[i / length] + i % length;
      for (const auto& [name, shift] : {std::pair("a", 0), std::pair("b", 1)}) {
        const std::vector<float> values = trainer.parameter(name);
        const auto row = std::span(values).subspan(i * 11, 11);
        CHECK(std::ranges::max_element(row) - row.begin() == text[at + static_cast<std::size_t>(shift)]);
      }
    }
    for (int i = 0; i < 10; ++i) trainer.step();
    const std::string names[] = {"a", "b"};
    seen.push_back(testing::all_weights(trainer, names));
  }
  CHECK(seen[0] == seen[1]);
}

TEST_CASE("ten million rows are gathered right, beyond what a device binds") {
  constexpr std::int64_t rows = 10'000'019;
  const auto value = [](std::int64_t row, std::size_t f) {
    return static_cast<float>(row % 65'521) + static_cast<float>(f) / 8;
  };
  std::vector<float> x(static_cast<std::size_t>(rows * features));
  std::vector<std::uint16_t> y(static_cast<std::size_t>(rows));
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::size_t f = 0; f < features; ++f) x[static_cast<std::size_t>(i * features) + f] = value(i, f);
    y[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(i % classes);
  }
  const Dataset set =
      Dataset::of("rows", {Field::own("x", {features}, std::move(x)), Field::own("y", {}, std::move(y))});
  // With labels alone on the device, 20 MB; with the features, 200 MB, it depends on the device.
  Trainer trainer = glass([&](TrainerOptions& options) { options.training_set = &set; });
  BatchSampler sampler = BatchSampler::training(rows, batch, seed);
  std::vector<float> before = trainer.parameter("w");
  for (int step = 0; step < 3; ++step) {
    trainer.step();
    const std::vector<float> after = trainer.parameter("w");
    const auto indices = sampler.batch(step);
    for (std::size_t i = 0; i < batch * features; ++i) {
      CHECK(before[i] - after[i] == doctest::Approx(value(indices[i / features], i % features)).epsilon(1e-6));
    }
    before = after;
  }
}

TEST_CASE("a feed that the data cannot fill is refused by what is missing") {
  const Dataset set = table(40);
  const Source source = source_of(set);
  const auto refused = [&](const std::function<void(TrainerOptions&)>& change, const char* message) {
    CHECK_THROWS_WITH_AS(glass([&](TrainerOptions& options) {
                           options.training_set = &set;
                           change(options);
                         }),
                         doctest::Contains(message), Error);
  };
  refused([](TrainerOptions& options) { options.feed->inputs[0].field = "z"; },
          "[feed] expected a field 'z' in 'table' for the input 'x', got 'x', 'y'");
  refused([](TrainerOptions& options) { options.feed->inputs[0].field = "y"; },
          "[feed] expected a field of u8 or f32 for the input 'x', got 'y' of u16");
  refused([](TrainerOptions& options) { options.feed->inputs[1].field = "x"; },
          "[feed] expected a field of u8, u16 or u32 for the input 'y', got 'x' of f32");
  refused([](TrainerOptions& options) { options.feed->inputs.pop_back(); },
          "[feed] expected every input to be fed, got 'y'");
  refused([](TrainerOptions& options) { options.feed->inputs.push_back(options.feed->inputs[0]); },
          "[feed] expected each input once, got 'x' twice");
  refused([](TrainerOptions& options) { options.feed->inputs[1].mean = {1}; },
          "[feed] expected integers that are not normalised for 'y'");
  refused([](TrainerOptions& options) { options.feed->inputs[0].mean = {1, 2}; }, "or 5 for as many channels, got 2");
  refused([](TrainerOptions& options) { options.feed->augmentation.flip = 0.5F; },
          "[feed] expected an input for the samples that are augmented, got none");
  refused([&](TrainerOptions& options) { options.source = &source; }, "expected a training set or a source, got both");
  Dataset other = table(40);
  other.fields[1] = Field::own("y", {}, std::vector<std::uint16_t>(40, classes));
  refused([&](TrainerOptions& options) { options.training_set = &other; },
          "expected a set of at most 7 classes, as many as cross_entropy has logits, got 8 in 'table'");
  Trainer trainer = glass([&](TrainerOptions& options) { options.training_set = &set; });
  CHECK_THROWS_WITH_AS(trainer.evaluate(other), doctest::Contains("at most 7 classes"), Error);
  other.fields.pop_back();
  CHECK_THROWS_WITH_AS(trainer.evaluate(other),
                       doctest::Contains("[evaluate] expected 'y' of u16 {} in 'table', got none"), Error);
}

}  // namespace halfstep
