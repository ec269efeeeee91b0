// Kernels that were measured to be the fastest, where they need more memory than those of the rule.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "harness/as_gpu.h"
#include "harness/device.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "step/execution.h"
#include "train/small_training.h"
#include "tune/note_key.h"
#include "vk/device/notes.h"

using namespace halfstep;

namespace {

constexpr std::int64_t batch = 8;
constexpr std::int64_t channels = 32;

Tensor convolved(Graph& graph, const Tensor& images) {
  return models::same_conv(graph.root() / "conv", images, channels, 3);
}

TrainerOptions network(Graph& graph, std::int64_t size, const Dataset& data, std::uint64_t limit,
                       std::vector<std::string>& told) {
  const Tensor images = graph.input("images", {size, 12, 12, channels});
  const Tensor labels = graph.input("labels", {size}, DType::u32);
  return {.loss = cross_entropy(models::dense(graph.root() / "dense", flatten(convolved(graph, images)), 3), labels),
          .optimizer = Sgd{.rate = 0.1F},
          .precision = Precision::float32(),
          .feed = Feed{.samples = images, .labels = labels},
          .training_set = &data,
          .log = [&](const std::string& line) { told.push_back(line); },
          .memory_limit = limit,
          .resident_limit = 1};
}

struct Trained {
  std::uint64_t bytes = 0;
  std::vector<float> weights{};
  std::vector<std::string> told{};
};

Trained trained(const Device& device, const Dataset& data, std::uint64_t limit) {
  Trained result;
  Trainer trainer = Trainer::compile(
      device, [&](Graph& graph, std::int64_t size) { return network(graph, size, data, limit, result.told); }, batch);
  result.bytes = trainer.inspect().summary().peak_bytes;
  trainer.step();
  result.weights = trainer.parameter("conv/weight");
  return result;
}

/// Notes that Winograd's algorithm was measured to be the fastest for the convolution.
void note_winograd(const Device& device, const std::filesystem::path& folder) {
  Graph graph = testing::settled_graph();
  const Tensor result = convolved(graph, graph.input("images", {batch, 12, 12, channels}));
  const std::vector<graph::ValueId> wanted{result.id()};
  vk::Context& context = vk::context_of(device);
  step::ExecutionOptions options;
  options.target = context.target();
  const step::Execution execution(context, graph.ir(), wanted, options);
  vk::Notes notes(context.capabilities(), folder);
  for (const plan::Choice& choice : execution.plan().program.choices) {
    REQUIRE(std::ranges::count(choice.candidates, "winograd", &plan::Candidate::name) == 1);
    notes.add(tune::note_key(choice.key, context.capabilities(), context.target()), "winograd");
  }
  notes.save();
}

}  // namespace

TEST_CASE("kernels that were measured to be the fastest, but need too much memory, do not cut a step") {
  const Dataset data = testing::toy_dataset(16, {12, 12, channels}, 3);
  const TemporaryFolder folder;
  const testing::AsGpu as_gpu;  // whose kernels are measured: of software drivers the rule is known
  const auto opened = [&](Tuning tuning) {
    return Device::open(testing::device().info().name,
                        {.tuning = tuning, .cache_folder = folder.path(), .may_fork = false});
  };
  const Trained by_rule = trained(opened(Tuning::off), data, 0);
  const Device device = opened(Tuning::on);
  note_winograd(device, folder.path());
  const Trained measured = trained(device, data, 0);
  REQUIRE(measured.bytes > by_rule.bytes);
  const Trained limited = trained(device, data, by_rule.bytes);
  CHECK(limited.bytes == by_rule.bytes);
  CHECK(limited.weights == by_rule.weights);
  CHECK(limited.weights != measured.weights);
  CHECK(std::ranges::count(limited.told, "memory: kernels by rule, since the fastest ones need more than there is") ==
        1);
  CHECK(limited.told.back().starts_with("memory: a batch of 8, nothing recomputed: "));
}
