#include <halfstep/checkpoint.h>
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/device.h"
#include "host/temporary_folder.h"
#include "models/bert.h"
#include "models/lenet5.h"
#include "models/resnet_cifar.h"
#include "train/small_training.h"

/// Training with parameters and activations that are larger than one binding.
namespace halfstep {
namespace {

/// What is trained: fills in loss and feed.
struct Model {
  Dataset set;
  std::function<void(Graph& graph, TrainerOptions& options)> build;
};

Model images(const Shape& shape, std::int64_t batch, const std::function<Tensor(const Scope&, Tensor)>& logits_of) {
  return {testing::toy_dataset(24, shape, 10), [=](Graph& graph, TrainerOptions& options) {
            const Tensor x = graph.input("images", {batch, shape[0], shape[1], shape[2]});
            const Tensor labels = graph.input("labels", {batch}, DType::u32);
            options.loss = cross_entropy(logits_of(graph.root(), x), labels);
            options.feed = Feed{.samples = x, .labels = labels};
          }};
}

Model texts() {
  constexpr std::int64_t length = 24;
  constexpr std::uint32_t vocabulary = 900;
  std::vector<std::uint32_t> tokens;
  std::vector<std::uint32_t> labels;
  for (std::uint32_t i = 0; i < 16 * length; ++i) tokens.push_back(i * i * 7919 % vocabulary);
  for (std::uint32_t i = 0; i < 16; ++i) labels.push_back(tokens[i * length] % 3);
  return {Dataset::of("texts", {Field::own("tokens", {length}, std::move(tokens), vocabulary),
                                Field::own("labels", {}, std::move(labels))}),
          [](Graph& graph, TrainerOptions& options) {
            const Tensor x = graph.input("tokens", {4, length}, DType::u32);
            const Tensor of = graph.input("labels", {4}, DType::u32);
            const models::BertOptions sizes{
                .layers = 1, .heads = 2, .width = 32, .hidden = 96, .positions = length, .vocabulary = vocabulary};
            options.loss = cross_entropy(models::bert_classifier(graph.root(), {.tokens = x}, 3, sizes), of);
            options.feed = Feed{.inputs = {{.input = x}, {.input = of}}};
          }};
}

struct Trained {
  std::string file;
  std::uint64_t arena_bytes = 0;
  std::uint64_t submits = 0;  ///< of a step
};

/// The bytes of the file that weights and states are saved in after three steps on a device with these settings, which
/// begin with a checkpoint that is saved and loaded.
Trained trained(const Model& model, const DeviceSettings& settings, const Precision& precision) {
  const Device device = Device::open({}, settings);
  Graph graph;
  TrainerOptions options{.loss = {}, .optimizer = Adam{.rate = 0.01F}, .clip_norm = 1, .ema_decay = 0.9F};
  options.precision = precision;
  options.seed = 5;
  options.training_set = &model.set;
  model.build(graph, options);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "w.safetensors";
  Trainer first = Trainer::compile(device, graph, options);
  first.step();
  first.checkpoint().write(file);
  Trainer trainer = Trainer::compile(device, graph, options);
  trainer.load(file);
  for (int step = 0; step < 2; ++step) trainer.step();
  trainer.finish();
  CHECK(std::isfinite(trainer.report().loss));
  trainer.checkpoint().write(file);
  std::ifstream stream(file, std::ios::binary);
  return {.file = {std::istreambuf_iterator<char>(stream), {}},
          .arena_bytes = trainer.inspect().summary().arena_bytes,
          .submits = trainer.inspect().host_costs().submits};
}

/// SwiftShader compiles kernels with many branches for minutes.
bool compiles_slowly() {
  const bool slow = testing::context().info().name.find("SwiftShader") != std::string::npos;
  return slow && !testing::every_variant();
}

void check(const Model& model, const std::string& limits, const std::vector<Precision>& precisions) {
  if (compiles_slowly()) return;
  for (const Precision& precision : precisions) {
    const Trained whole = trained(model, {}, precision);
    const Trained windows = trained(model, {.limits = limits}, precision);
    CHECK(whole.file.size() > 1000);
    CHECK(windows.file == whole.file);
  }
}

/// f16 in which everything that can be is rounded at random.
Precision at_random() {
  Precision precision = Precision::mixed();
  precision.rounding = {.weights = Rounding::stochastic, .activations = Rounding::stochastic};
  return precision;
}

}  // namespace

TEST_CASE("trainings in windows end with the same bits: LeNet-5") {
  // Where images may be laid out as planes, which changes the order of sums, they must be so in windows, too.
  const bool planes = testing::context().target().uniform_loads;
  check(images({28, 28, 1}, 6, [](const Scope& scope, Tensor x) { return models::lenet5(scope, x); }),
        planes ? "storage_range=151000" : "storage_range=40000", {Precision::float32(), Precision::mixed()});
}

TEST_CASE("trainings in windows end with the same bits: a residual network") {
  check(images({16, 16, 3}, 4, [](const Scope& scope, Tensor x) { return models::resnet_cifar(scope, x, 8); }),
        "storage_range=33000", {Precision::mixed()});
}

TEST_CASE("trainings in windows end with the same bits: in an arena of several buffers, and in many submits") {
  if (compiles_slowly()) return;
  constexpr std::uint64_t largest = 700'000;
  const Model model =
      images({16, 16, 3}, 24, [](const Scope& scope, Tensor x) { return models::resnet_cifar(scope, x, 8); });
  const Trained whole = trained(model, {.submit_milliseconds = 1e6}, Precision::mixed());
  // A few hundred pieces: the validation layer's time grows with the square of their number.
  const double milliseconds = testing::context().target().cpu ? 0.4 : 0.001;
  const Trained windows = trained(
      model,
      {.submit_milliseconds = milliseconds, .limits = fmt::format("storage_range=140000,buffer_bytes={}", largest)},
      Precision::mixed());
  CHECK(windows.arena_bytes > 2 * largest);
  CHECK(whole.submits == 1);
  CHECK(windows.submits > 50);
  CHECK(windows.file == whole.file);
}

TEST_CASE("trainings in windows end with the same bits: a transformer, rounded at random") {
  check(texts(), "storage_range=9000", {at_random()});
}

namespace {

constexpr std::int64_t classes = 150'000;
constexpr std::int64_t width = 512;
constexpr std::int64_t batch = 1024;

/// What one step leaves of a dense layer of 150,000 classes: weights of 307 MB in `parts` parameters, and as many
/// logits as 614 MB in one batch, or less in several micro-batches.
struct Classifier {
  explicit Classifier(std::int64_t micro_batches, std::int64_t parts) {
    const std::int64_t own = batch / micro_batches;
    Graph graph;
    const Tensor x = graph.input("x", {own, 16});
    const Tensor labels = graph.input("labels", {own}, DType::u32);
    const Tensor hidden = relu(linear(x, graph.root().parameter("hidden", {16, width}, glorot(16, width))));
    std::vector<Tensor> logits;
    for (std::int64_t part = 0; part < parts; ++part) {
      const Scope scope = graph.root() / fmt::format("part{}", part);
      logits.push_back(linear(hidden, scope.parameter("weight", {width, classes / parts}, constant(0))));
    }
    const Tensor all = parts == 1 ? logits.front() : concat(logits, 1);
    trainer.emplace(Trainer::compile(testing::device(), graph,
                                     {.loss = cross_entropy(all, labels),
                                      .optimizer = Sgd{.rate = 100, .momentum = 0.9F},
                                      .clip_norm = 5,
                                      .accumulate = micro_batches,
                                      .precision = Precision::float32()}));
  }

  /// A step of the whole batch.
  void step() {
    std::vector<float> x;
    std::vector<std::uint32_t> labels;
    for (std::int64_t i = 0; i < batch * 16; ++i) x.push_back(static_cast<float>((i * i) % 17 - 8) / 8);
    for (std::int64_t i = 0; i < batch; ++i) labels.push_back(static_cast<std::uint32_t>(i * 146 + i % 7));
    trainer->step({{"x", std::span<const float>(x)}, {"labels", std::span<const std::uint32_t>(labels)}});
    trainer->finish();
  }

  std::optional<Trainer> trainer{};
};

}  // namespace

TEST_CASE("a dense layer of 150,000 classes, of 307 MB, with 614 MB of logits trains as its parts do") {
  if (!testing::every_variant()) return;
  const plan::Target& target = testing::context().target();
  CHECK(target.max_storage_range < 307'200'000);
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "w.safetensors";
  std::vector<float> whole;
  double loss = 0;
  {
    Classifier one(1, 1);
    one.step();
    one.trainer->checkpoint().write(file);
    loss = one.trainer->report().loss;
    whole = one.trainer->parameter("part0/weight");
  }
  {
    Classifier loaded(4, 1);
    loaded.trainer->load(file);
    CHECK(loaded.trainer->parameter("part0/weight") == whole);
  }
  constexpr std::int64_t parts = 10;
  Classifier in_parts(16, parts);
  in_parts.step();
  CHECK(in_parts.trainer->report().loss == doctest::Approx(loss).epsilon(1e-5));
  std::size_t wrong = 0;
  float largest = 0;
  const float rounding = batch * 0x1p-24F;  // of a sum of as many terms as the batch has samples
  for (const float v : whole) largest = std::max(largest, std::abs(v));
  CHECK(largest > 0);
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::vector<float> own = in_parts.trainer->parameter(fmt::format("part{}/weight", part));
    constexpr std::int64_t columns = classes / parts;
    for (std::int64_t i = 0; i < width; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        const float of_whole = whole[static_cast<std::size_t>(i * classes + part * columns + j)];
        wrong += std::abs(of_whole - own[static_cast<std::size_t>(i * columns + j)]) > rounding * largest ? 1U : 0U;
      }
    }
  }
  CHECK(wrong == 0);
}

}  // namespace halfstep
