// Trainings whose parameters together exceed the device's largest buffer: weights, masters, gradients, moments and all
// else of the store consist of several buffers each.
#include <halfstep/checkpoint.h>
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "harness/device.h"
#include "harness/errors.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "train/rank_threads.h"
#include "train/scaled_gradients.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

using Change = std::function<void(TrainerOptions&)>;

const Dataset& training_set() {
  static const Dataset set = testing::toy_dataset(40, {6, 10, 1}, 3);
  return set;
}

/// Of 79,000 parameters, and states of 19,000 elements: with parts of 65,536 bytes, weights lie in three in f16 and in
/// five in f32, moments in ten or more, some tensors' own in two, and states in two.
struct Model {
  explicit Model(std::int64_t batch = 8) {
    images = graph.input("images", {batch, 6, 10, 1});
    labels = graph.input("labels", {batch}, DType::u32);
    Tensor x = flatten(images);
    for (int layer = 0; layer < 10; ++layer) {
      const Scope scope = graph.root() / fmt::format("layer{}", layer);
      const std::int64_t units = layer % 2 == 0 ? 99 : 81;
      x = models::batch_norm(scope / "norm", models::dense(scope, x, units, models::Before::relu));
      x = relu(x);
      if (layer != 2 && layer != 5) continue;
      const Tensor shift = scope.state("shift", {100, units}, uniform(-0.1F, 0.1F));
      update(shift, add(scale(shift, 0.9F), mean(x, {0})));
      x = add(x, mean(shift, {0}));
    }
    logits = models::dense(graph.root() / "last", x, 3);
  }

  Graph graph;
  Tensor images;
  Tensor labels;
  Tensor logits;
};

struct Case {
  const char* name;
  Precision precision;
  Change change;
};

Trainer trainer_of(const Case& of, const Device& device, const Ranks& ranks = {}, std::int64_t batch = 8) {
  const Model model(batch);
  TrainerOptions options{.loss = cross_entropy(model.logits, model.labels),
                         .optimizer = Adam{.rate = 0.01F},
                         .precision = of.precision,
                         .seed = 3,
                         .feed = Feed{.samples = model.images, .labels = model.labels},
                         .training_set = &training_set()};
  of.change(options);
  options.ranks = ranks;
  options.ranks.bucket_bytes = 60000;
  options.ranks.compare_every = 2;
  return Trainer::compile(device, model.graph, std::move(options));
}

/// A rule in operators with three states, no power of two.
class ThreeStates final : public UpdateRule {
 public:
  std::string name() const override { return "three_states"; }
  const Schedule& rate() const override { return rate_; }
  float weight_decay() const override { return 0.01F; }
  void check() const override {}
  std::vector<std::string> states() const override { return {"fast", "slow", "past"}; }
  bool in_operators() const override { return true; }

  UpdateResult update(const UpdateTensors& now) const override {
    const Tensor fast = add(scale(now.states[0], 0.5F), now.gradient);
    const Tensor slow = add(scale(now.states[1], 0.875F), scale(now.gradient, 0.25F));
    const Tensor past = add(scale(now.states[2], 0.75F), scale(now.weight, 0.25F));
    return {.direction = add(add(fast, slow), sub(now.weight, past)), .states = {fast, slow, past}};
  }

 private:
  Schedule rate_ = 0.01F;
};

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// Two steps, saved, loaded by another trainer, and two more. A checkpoint says it all: weights, averages, moments,
/// states, scales and counters.
struct Result {
  std::string checkpoint;
  std::vector<float> numbers;
  std::vector<double> losses;
  std::uint64_t skipped = 0;

  bool operator==(const Result&) const = default;
};

void add(std::vector<float>& all, const std::vector<float>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

/// What a predictor makes of two images.
std::vector<float> predicted(Predictor predictor) {
  std::vector<float> image;
  for (int i = 0; i < 120; ++i) image.push_back(static_cast<float>(i % 7) / 7);
  return predictor.run({{"images", std::span<const float>(image)}});
}

/// Sets and reads single tensors, and has two predictors read all.
void use_weights(Trainer& trainer, const Device& device, const Precision& precision, std::vector<float>& numbers) {
  for (const char* const name : {"layer5/weight", "layer2/bias", "layer5/shift", "layer8/weight"}) {
    std::vector<float> values = trainer.parameter(name);
    add(numbers, values);
    for (float& value : values) value = value / 2 + 0.01F;
    trainer.set_parameter(name, values);
    add(numbers, trainer.parameter(name));
  }
  const Model model(2);
  add(numbers, predicted(Predictor::compile(trainer, model.graph, model.logits)));
  const TemporaryFolder folder;
  trainer.save_weights(folder.path() / "weights");
  Predictor own = Predictor::compile(device, model.graph, model.logits, precision);
  own.load_weights(folder.path() / "weights");
  add(numbers, predicted(std::move(own)));
}

Result trained(const Case& of, const Device& device) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "checkpoint";
  Trainer first = trainer_of(of, device);
  for (int step = 0; step < 2; ++step) first.step();
  first.save(file);
  Trainer trainer = trainer_of(of, device);
  trainer.load(file);
  for (int step = 0; step < 2; ++step) trainer.step();
  Result result;
  use_weights(trainer, device, of.precision, result.numbers);
  trainer.step();
  trainer.finish();
  result.skipped = trainer.report().skipped;
  result.losses.push_back(trainer.report().loss);
  result.losses.push_back(trainer.evaluate(training_set()).loss);
  trainer.save(file);
  result.checkpoint = text_of(file);
  if (result.checkpoint.find(".average\"") == std::string::npos) return result;
  result.losses.push_back(trainer.evaluate(training_set(), Weights::averaged).loss);
  add(result.numbers, trainer.parameter("layer7/weight", Weights::averaged));
  return result;
}

Precision rounded_at_random() {
  Precision precision = Precision::float16();
  precision.moments = DType::f16;
  precision.rounding.weights = Rounding::stochastic;
  precision.rounding.activations = Rounding::stochastic;
  precision.rounding.optimizer = Rounding::stochastic;
  return precision;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"SGD, f32", Precision::float32(),
       [](TrainerOptions& options) {
         options.optimizer = Sgd{.rate = 0.05F};
         options.weight_limit = 0.2F;
       }},
      {"Adam, mixed, with averages, overflows, clipping and frozen layers", testing::overflowing(),
       [](TrainerOptions& options) {
         options.ema_decay = 0.9F;
         options.clip_norm = 0.5F;
         options.groups = {{.pattern = "layer4/*", .frozen = true}};
       }},
      {"RMSprop with three states, f32, micro-batches, averages", Precision::float32(),
       [](TrainerOptions& options) {
         options.optimizer = RmsProp{.rate = 1e-3F, .momentum = 0.9F, .centered = true};
         options.accumulate = 2;
         options.ema_decay = 0.9F;
       }},
      {"Adam, f16 rounded at random, micro-batches", rounded_at_random(),
       [](TrainerOptions& options) {
         options.accumulate = 2;
         options.weight_limit = 0.3F;
       }},
      {"scales of gradients, micro-batches", testing::scaled(),
       [](TrainerOptions& options) {
         options.accumulate = 2;
         options.clip_norm = 0.25F;
       }},
      {"two optimizers and frozen layers, mixed", Precision::mixed(),
       [](TrainerOptions& options) {
         options.optimizer = Muon{.rate = 0.01F};
         options.groups = {{.pattern = "layer5/*", .optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F}},
                           {.pattern = "layer0/*", .frozen = true}};
         options.weight_limit = 0.4F;
       }},
      {"a rule in operators with three states, micro-batches", Precision::mixed(),
       [](TrainerOptions& options) {
         options.optimizer = Optimizer(std::make_shared<ThreeStates>());
         options.accumulate = 2;
       }},
  };
  return all;
}

Device told(const std::string& limits) {
  return Device::open({}, {.limits = limits});
}

/// SwiftShader compiles kernels with windows for minutes.
bool compiles_slowly() {
  const bool slow = testing::context().info().name.find("SwiftShader") != std::string::npos;
  return slow && !testing::every_variant();
}

/// Of some of the cases, on devices with such limits and on one that holds the store whole.
void expect_same_bits(std::initializer_list<std::size_t> chosen, const Device& whole,
                      std::initializer_list<const char*> limits) {
  for (const std::size_t i : chosen) {
    CAPTURE(std::string(cases()[i].name));
    const Result wanted = trained(cases()[i], whole);
    for (const char* const each : limits) {
      CAPTURE(std::string(each));
      CHECK(trained(cases()[i], told(each)) == wanted);
    }
  }
}

}  // namespace

TEST_CASE("a store in several buffers trains to the same bits") {
  const Device whole = told("");
  const Device in_parts = told("buffer_bytes=70000");
  CHECK(vk::context_of(in_parts).target().part_bytes == 65536);
  for (const Case& of : cases()) {
    CAPTURE(std::string(of.name));
    const Result wanted = trained(of, whole);
    const Result got = trained(of, in_parts);
    CHECK(got.checkpoint == wanted.checkpoint);
    CHECK(got.numbers == wanted.numbers);
    CHECK(got.losses == wanted.losses);
    CHECK(got.skipped == wanted.skipped);
    if (std::string(of.name).find("overflows") != std::string::npos) CHECK(wanted.skipped > 0);
  }
}

TEST_CASE("a store in several buffers trains to the same bits where bindings are smaller, or as large") {
  if (compiles_slowly()) return;
  expect_same_bits({1, 2, 3}, told(""),
                   {"buffer_bytes=65536,storage_range=65536", "buffer_bytes=70000,storage_range=30000"});
}

TEST_CASE("parameters that are larger than the largest buffer, too, train to the same bits") {
  if (compiles_slowly()) return;
  const Device whole = told("texels=2048");  // as many as a part has, so that products have the same kernels
  expect_same_bits({1, 3, 5, 6}, whole, {"buffer_bytes=33000", "buffer_bytes=33000,storage_range=9000"});
}

TEST_CASE("what cannot consist of several buffers is an error that names it") {
  const auto compiled = [](const char* limits, const Precision& precision) {
    return testing::error_of([&] {
      Case of = cases()[0];
      of.precision = precision;
      trainer_of(of, told(limits));
    });
  };
  CHECK(compiled("buffer_bytes=8192,storage_buffers=8", Precision::float32())
            .find("expected at most 8 storage buffers, the device's limit, got ") != std::string::npos);
  CHECK(compiled("buffer_bytes=40000", testing::scaled()).find("[memory] expected gradient scales to take at most ") !=
        std::string::npos);
}

TEST_CASE("ranks train to the same bits with stores in several buffers, what optimizers keep shared out or not") {
  const std::vector<Case> all{
      {"RMSprop with three states, f32", Precision::float32(),
       [](TrainerOptions& options) {
         options.optimizer = RmsProp{.rate = 1e-3F, .momentum = 0.9F, .centered = true};
         options.clip_norm = 0.5F;
       }},
      {"Adam, mixed, micro-batches", Precision::mixed(), [](TrainerOptions& options) {
         options.groups = {{.pattern = "layer5/*", .optimizer = Sgd{.rate = 0.05F, .momentum = 0.9F}}};
         options.accumulate = 2;
         options.weight_limit = 0.3F;
       }}};
  const TemporaryFolder folder;
  const auto trained = [&](const Case& of, const Device& device, bool sharded) {
    return testing::results_of_ranks<std::string>(2, [&](int rank, Ranks ranks) {
      ranks.shard_state = sharded;
      Trainer trainer = trainer_of(of, device, ranks, 4);
      for (int step = 0; step < 2; ++step) trainer.step();
      trainer.save(folder.path() / std::to_string(rank));
      ranks.exchange->barrier();
      trainer.load(folder.path() / "0");
      for (int step = 0; step < 2; ++step) trainer.step();
      trainer.save(folder.path() / std::to_string(rank));
      return rank == 0 ? text_of(folder.path() / "0") : std::string();
    })[0];
  };
  const Device whole = told("");
  const Device in_parts = told("buffer_bytes=440000");
  const Device in_more = told("buffer_bytes=500000,storage_range=30000");
  CHECK(vk::context_of(in_parts).target().part_bytes == 262144);
  for (const Case& of : all) {
    CAPTURE(std::string(of.name));
    const std::string wanted = trained(of, whole, false);
    CHECK(wanted.size() > 500000);
    for (const bool sharded : {false, true}) {
      CAPTURE(sharded);
      CHECK(trained(of, in_parts, sharded) == wanted);
      if (!compiles_slowly()) CHECK(trained(of, in_more, sharded) == wanted);
    }
  }
  const std::string error = testing::results_of_ranks<std::string>(2, [&](int, const Ranks& ranks) {
    return testing::error_of([&] { trainer_of(all[0], told("buffer_bytes=70000"), ranks, 4); });
  })[0];
  CHECK(error.find("[memory] expected exchange to take at most 70000 bytes") != std::string::npos);
}

}  // namespace halfstep
