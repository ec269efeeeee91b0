// What a training takes in memory, and what is said where there is too little.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "harness/device.h"
#include "harness/faults.h"
#include "models/layers.h"
#include "train/small_training.h"

namespace halfstep {
namespace {

constexpr std::int64_t batch = 256;

Trainer trainer_with(const Dataset& data, std::uint64_t limit, std::int64_t batch_size,
                     const Device& device = testing::device()) {
  return testing::toy_trainer(data,
                              {.batch = batch_size, .resident_limit = 1, .device = device, .change = [&](auto& to) {
                                 to.memory_limit = limit;
                               }});
}

std::string refusal(const Dataset& data, std::uint64_t limit, const Device& device = testing::device()) {
  try {
    trainer_with(data, limit, batch, device);
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    return error.what();
  }
  return "no refusal";
}

std::string ask(const std::string& text, const std::string& pattern) {
  std::smatch found;
  CAPTURE(text);
  REQUIRE(std::regex_search(text, found, std::regex(pattern)));
  return found[1];
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a training that exceeds its memory limit is refused with what takes how much and what batch fits") {
  const Dataset data = testing::toy_dataset(batch, {6, 5, 1}, 3);
  const std::uint64_t needed = trainer_with(data, 0, batch).inspect().summary().peak_bytes;
  CHECK(trainer_with(data, needed, batch).inspect().summary().peak_bytes == needed);
  const std::string text = refusal(data, needed - 1);
  CAPTURE(text);
  CHECK(contains(text, "the memory limit"));
  CHECK(contains(text, "of activations (the largest: '"));
  CHECK(contains(text, "of weights"));
  CHECK(contains(text, "of gradients"));
  CHECK(contains(text, "of optimizer state"));
  for (const std::uint64_t limit : {needed / 2, needed / 5}) {
    const std::int64_t fits = std::stoll(ask(refusal(data, limit), "batch of about ([0-9]+) fits"));
    CHECK(fits > 4);
    CHECK(fits < batch);
    CHECK_NOTHROW(trainer_with(data, limit, 9 * fits / 10));
  }
  CHECK(contains(refusal(data, 1), "not even a batch of 1"));
}

TEST_CASE(
    "an evaluation that takes more memory than a step counts, and what it computes of weights whatever the batch") {
  constexpr std::uint64_t folded = 9 * 256 * 256 * sizeof(float);
  const Device device = Device::open(testing::device().info().name, {.tuning = Tuning::off, .may_fork = false});
  const Dataset data = testing::toy_dataset(8, {4, 4, 256}, 3);
  const auto compiled = [&](std::uint64_t limit) {
    Graph graph;
    const Tensor images = graph.input("images", {2, 4, 4, 256});
    const Tensor labels = graph.input("labels", {2}, DType::u32);
    const Tensor x = models::same_conv(graph.root() / "conv", images, 256, 3, models::Bias::none);
    const Tensor y = models::batch_norm(graph.root() / "norm", x);
    Trainer trainer =
        Trainer::compile(device, graph,
                         {.loss = cross_entropy(models::dense(graph.root() / "top", global_average_pool(y), 3), labels),
                          .precision = Precision::float32(),
                          .feed = Feed{.samples = images, .labels = labels},
                          .training_set = &data,
                          .memory_limit = limit,
                          .resident_limit = 1});
    return trainer.inspect().summary();
  };
  const PlanSummary summary = compiled(0);
  CHECK(summary.arena_bytes >= folded);
  CHECK(summary.arena_bytes_unshared >= summary.arena_bytes);
  CHECK(compiled(summary.peak_bytes).peak_bytes == summary.peak_bytes);
  CHECK_THROWS_WITH_AS(compiled(summary.peak_bytes - 1), doctest::Contains("a batch of about 1 fits, not 2"), Error);
  CHECK_THROWS_WITH_AS(compiled(summary.peak_bytes - summary.arena_bytes + folded - 1),
                       doctest::Contains("not even a batch of 1 fits"), Error);
}

TEST_CASE("a device with too little memory is named before any is allocated") {
  const Dataset data = testing::toy_dataset(1 << 14, {6, 5, 1}, 3);
  const Device device = Device::open(testing::device().info().name,
                                     {.tuning = Tuning::off, .limits = "memory=2000000", .may_fork = false});
  try {
    trainer_with(data, 0, 1 << 14, device);
    FAIL("not refused");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::out_of_memory);
    CHECK(contains(error.what(), "what " + device.info().name + " has"));
  }
  CHECK_NOTHROW(trainer_with(data, 0, 64, device));
}

TEST_CASE("where the driver has no more memory, the training that wanted it is described") {
  const Dataset data = testing::toy_dataset(batch, {6, 5, 1}, 3);
  testing::FaultyVulkan vulkan;
  const Device device = Device::open(testing::device().info().name, {.tuning = Tuning::off, .may_fork = false});
  vulkan.plan(testing::Fault{"vkCreateBuffer", 2, VK_ERROR_OUT_OF_DEVICE_MEMORY});
  const std::string text = refusal(data, 0, device);
  CAPTURE(text);
  CHECK(contains(text, "VK_ERROR_OUT_OF_DEVICE_MEMORY"));
  CHECK(contains(text, "The training takes "));
  CHECK(contains(text, "are free now: a smaller batch takes less"));
}

namespace {

/// Two blocks of layers, which take most of their memory when they go backward.
TrainerOptions blocks(Graph& graph, std::int64_t size, const Dataset& data) {
  const Tensor images = graph.input("images", {size, 6, 5, 1});
  const Tensor labels = graph.input("labels", {size}, DType::u32);
  Tensor x = images;
  for (const char* block : {"first", "second"}) {
    for (const char* layer : {"a", "b", "c"}) {
      x = sigmoid(models::same_conv(graph.root() / block / layer, x, 8, 3));
    }
  }
  return {.loss = cross_entropy(models::dense(graph.root() / "top", flatten(x), 3), labels),
          .optimizer = Sgd{.rate = 0.1F},
          .precision = Precision::float32(),
          .feed = Feed{.samples = images, .labels = labels},
          .training_set = &data,
          .resident_limit = 1};
}

struct Fitted {
  std::vector<float> weights;
  std::uint64_t bytes = 0;
  std::vector<std::string> told;
};

Fitted fit(const Dataset& data, std::uint64_t limit) {
  Fitted fitted;
  Trainer trainer = Trainer::compile(
      testing::device(),
      [&](Graph& graph, std::int64_t size) {
        TrainerOptions options = blocks(graph, size, data);
        options.memory_limit = limit;
        options.log = [&](const std::string& line) { fitted.told.push_back(line); };
        return options;
      },
      60);
  for (int step = 0; step < 3; ++step) trainer.step();
  CHECK(trainer.reopen(testing::device()).step == 3);
  for (int step = 0; step < 3; ++step) trainer.step();
  const std::string names[] = {"first/a/weight", "second/c/weight", "top/weight"};
  fitted.weights = testing::all_weights(trainer, names);
  fitted.bytes = trainer.inspect().summary().peak_bytes;
  return fitted;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(static_cast<double>(a[i] - b[i])));
  return most;
}

}  // namespace

TEST_CASE("a step is cut to fit its memory: recomputed first, bit for bit, then in micro-batches") {
  const Dataset data = testing::toy_dataset(120, {6, 5, 1}, 3);
  const Fitted whole = fit(data, 0);
  CHECK(contains(whole.told.back(), "memory: a batch of 60, nothing recomputed: "));
  const Fitted recomputed = fit(data, whole.bytes - 1);
  CHECK(contains(recomputed.told.back(), "memory: a batch of 60, '*"));
  CHECK(recomputed.bytes < whole.bytes);
  CHECK(recomputed.weights == whole.weights);
  std::vector<std::int64_t> pieces{1};
  for (std::uint64_t limit = whole.bytes / 2; limit > whole.bytes / 4; limit = limit * 2 / 3) {
    CAPTURE(limit);
    const Fitted cut = fit(data, limit);
    CAPTURE(cut.told.back());
    CHECK(cut.bytes <= limit);
    pieces.push_back(std::stoll(ask(cut.told.back(), "memory: ([0-9]+) micro-batches")));
    CHECK(pieces.back() >= pieces[pieces.size() - 2]);
    const std::int64_t allocated = std::stoll(ask(cut.told.back(), "predicted, ([0-9]+) allocated"));
    CHECK(allocated >= static_cast<std::int64_t>(cut.bytes));
    CHECK(static_cast<double>(allocated) < 1.05 * static_cast<double>(cut.bytes) + 40 * 1024);
    CHECK(distance(cut.weights, whole.weights) < 1e-5);
  }
  CHECK(pieces.back() > 3);
  CHECK_THROWS_WITH_AS(fit(data, 80'000), doctest::Contains("the memory limit"), Error);
  CHECK_THROWS_WITH_AS(fit(data, 1000), doctest::Contains("not even a batch of 1"), Error);
  CHECK_THROWS_WITH_AS(
      Trainer::compile(
          testing::device(), [&](Graph& graph, std::int64_t size) { return blocks(graph, size, data); }, 0),
      doctest::Contains("at least 1"), Error);
}

namespace {

/// Compiles `model`, and notes the sizes that it is asked for.
struct Sizes {
  std::vector<std::int64_t> tried;
  std::string told;

  Trainer compile(const Device& device, std::int64_t size, const Trainer::Model& model) {
    tried.clear();
    return Trainer::compile(
        device,
        [&](Graph& graph, std::int64_t part) {
          tried.push_back(part);
          TrainerOptions options = model(graph, part);
          options.precision = Precision::float32();
          options.log = [this](const std::string& line) { told = line; };
          return options;
        },
        size);
  }
};

TrainerOptions classes_of(Graph& graph, std::int64_t size) {
  const Tensor x = graph.input("x", {size, 8});
  const Tensor labels = graph.input("labels", {size}, DType::u32);
  const Tensor w = graph.root().parameter("w", {8, 1024}, normal(1));
  return {.loss = cross_entropy(linear(x, w, {}), labels)};
}

std::vector<float> step_of_classes(Trainer& trainer) {
  std::vector<float> x(std::size_t{512} * 8);
  std::vector<std::uint32_t> labels(512);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) / 8 - 0.75F;
  for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<std::uint32_t>(37 * i % 1024);
  trainer.step({{"x", std::span<const float>(x)}, {"labels", std::span<const std::uint32_t>(labels)}});
  return trainer.parameter("w");
}

}  // namespace

TEST_CASE("a step with tensors beyond a limit of the device is cut, and the last size is named where none fits") {
  const Device device =
      Device::open(testing::device().info().name,
                   {.tuning = Tuning::off, .limits = "storage_buffers=8,storage_range=65536", .may_fork = false});
  Sizes sizes;
  Trainer cut = sizes.compile(device, 512, classes_of);
  CHECK(contains(sizes.told, "micro-batches of"));
  CHECK(sizes.tried.front() == 512);
  CHECK(sizes.tried.back() < 512);
  Trainer whole = sizes.compile(testing::device(), 512, classes_of);
  CHECK(sizes.tried == std::vector<std::int64_t>{512});
  CHECK(distance(step_of_classes(cut), step_of_classes(whole)) < 1e-5);
  const auto large = [](Graph& graph, std::int64_t size) -> TrainerOptions {
    return {.loss = mean(mul(graph.input("x", {size, 1 << 18}), graph.root().parameter("w", {1}, constant(1))))};
  };
  CHECK_THROWS_WITH_AS(sizes.compile(device, 4, large), doctest::Contains("{1, 262144}"), Error);
  CHECK(sizes.tried == std::vector<std::int64_t>{4, 2, 1});
  const auto wrong = [](Graph& graph, std::int64_t size) {
    TrainerOptions options = classes_of(graph, size);
    options.accumulate = 0;
    return options;
  };
  CHECK_THROWS_WITH_AS(sizes.compile(device, 4, wrong), doctest::Contains("expected 1 to 1024"), Error);
  CHECK(sizes.tried == std::vector<std::int64_t>{4});
}

TEST_CASE("where 1,024 micro-batches do not fit, it is memory that there is too little of") {
  Sizes sizes;
  const auto code = [&](std::int64_t size, std::int64_t accumulate) {
    try {
      sizes.compile(testing::device(), size, [&](Graph& graph, std::int64_t part) -> TrainerOptions {
        const Tensor x = graph.input("x", {part, 1 << 16});
        return {.loss = mean(mul(x, graph.root().parameter("w", {1}, constant(1)))),
                .accumulate = accumulate,
                .memory_limit = 100'000};
      });
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::system;
  };
  CHECK(code(1031, 1) == ErrorCode::out_of_memory);
  CHECK(code(4096, 1) == ErrorCode::out_of_memory);
  CHECK(code(4, 400) == ErrorCode::out_of_memory);
}

}  // namespace halfstep
