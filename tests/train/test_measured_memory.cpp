// Kernels that were measured to be the fastest, where they need more memory than those of the rule.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "graph/ir.h"
#include "harness/device.h"
#include "host/temporary_folder.h"
#include "models/layers.h"
#include "step/execution.h"
#include "train/small_training.h"
#include "tune/note_key.h"
#include "vk/device/loader.h"
#include "vk/device/notes.h"

using namespace halfstep;

namespace {

struct Entries {
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkGetPhysicalDeviceProperties properties = nullptr;
};

Entries& entries() {
  static Entries all;
  return all;
}

VKAPI_ATTR void VKAPI_CALL properties_of_gpu(VkPhysicalDevice device, VkPhysicalDeviceProperties* properties) {
  entries().properties(device, properties);
  properties->deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = entries().get_proc(instance, name);
  if (std::string_view(name) != "vkGetPhysicalDeviceProperties") return found;
  entries().properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(&properties_of_gpu);
}

/// While it lives, devices say that they are GPUs, whose kernels are measured: of software drivers the rule is known.
class AsGpu {
 public:
  AsGpu() {
    testing::device();  // is opened without this
    entries().get_proc = vk::load_global().get_proc;
    vk::replace_loader(&instance_function);
  }
  ~AsGpu() { vk::replace_loader(nullptr); }
  AsGpu(const AsGpu&) = delete;
  AsGpu& operator=(const AsGpu&) = delete;
};

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
  const AsGpu as_gpu;
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
