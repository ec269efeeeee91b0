// An application's device: its memory, semaphores, command buffers, allocator and debug callback.
#include <halfstep/halfstep.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "harness/application.h"
#include "harness/device.h"
#include "harness/faults.h"
#include "harness/values.h"
#include "vk/device/loader.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"

using namespace halfstep;
using testing::Application;
using testing::ApplicationBuffer;
using testing::number;

namespace {

constexpr std::int64_t batch = 6;

/// Classifies rows of 3 numbers, or of 4.
struct Model {
  explicit Model(std::int64_t columns) : x(graph.input("x", {batch, columns})) {
    const auto layer = [&](const char* name, Tensor in, std::int64_t from, std::int64_t to) {
      const Scope scope = graph.root() / name;
      return linear(in, scope.parameter("weight", {from, to}, he(from)), scope.parameter("bias", {to}, constant(0)));
    };
    logits = layer("second", relu(layer("first", x, columns, 8)), 8, 5);
  }
  Trainer trainer(const Device& device, TrainerOptions options) {
    const Tensor y = graph.input("y", {batch}, DType::u32);
    options.loss = cross_entropy(logits, y);
    options.optimizer = Adam{.rate = 0.05F};
    return Trainer::compile(device, graph, options);
  }

  Graph graph;
  Tensor x;
  Tensor logits;
};

std::vector<float> rows(std::int64_t count, std::int64_t columns, std::uint64_t seed) {
  const reference::Array array = testing::uniform({count, columns}, seed);
  return {array.values.begin(), array.values.end()};
}

std::vector<std::uint32_t> labels(std::int64_t count) {
  std::vector<std::uint32_t> result;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(static_cast<std::uint32_t>(i * 7 % 5));
  return result;
}

template <typename T>
void put(std::span<float> memory, std::size_t first, const std::vector<T>& values) {
  std::memcpy(&memory[first], values.data(), values.size() * sizeof(T));
}

std::vector<float> weights(Trainer& trainer) {
  const std::string names[] = {"first/weight", "first/bias", "second/weight", "second/bias"};
  std::vector<float> all;
  for (const std::string& name : names) {
    const std::vector<float> some = trainer.parameter(name);
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

/// A command buffer of the application's.
class Commands {
 public:
  explicit Commands(Application& application) : application_(application) {
    auto pool = vk::structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
    pool.queueFamilyIndex = application.family();
    const vk::DeviceTable& table = application.table();
    vk::check(table.vkCreateCommandPool(application.device(), &pool, nullptr, &pool_), "vkCreateCommandPool");
    auto info = vk::structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    vk::check(table.vkAllocateCommandBuffers(application.device(), &info, &commands_), "vkAllocateCommandBuffers");
    const auto begin = vk::structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    vk::check(table.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
  }
  ~Commands() { application_.table().vkDestroyCommandPool(application_.device(), pool_, nullptr); }
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  void end() { vk::check(application_.table().vkEndCommandBuffer(commands_), "vkEndCommandBuffer"); }
  /// Submits it, and waits.
  void run() {
    auto info = vk::structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands_;
    application_.submit(info);
    application_.wait_idle();
  }
  VkCommandBuffer handle() const { return commands_; }

 private:
  Application& application_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

class Semaphore {
 public:
  Semaphore(const Application& application, bool timeline) : application_(application) {
    auto type = vk::structure<VkSemaphoreTypeCreateInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO_KHR);
    type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE_KHR;
    auto info = vk::structure<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
    if (timeline) info.pNext = &type;
    const auto create = application.function<PFN_vkCreateSemaphore>("vkCreateSemaphore");
    vk::check(create(application.device(), &info, nullptr, &semaphore_), "vkCreateSemaphore");
  }
  ~Semaphore() {
    application_.function<PFN_vkDestroySemaphore>("vkDestroySemaphore")(application_.device(), semaphore_, nullptr);
  }
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  VkSemaphore handle() const { return semaphore_; }
  QueueSemaphore binary() const { return {number(semaphore_), {}}; }
  QueueSemaphore at(std::uint64_t value) const { return {number(semaphore_), value}; }
  void signal(std::uint64_t value) const {
    auto info = vk::structure<VkSemaphoreSignalInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO_KHR);
    info.semaphore = semaphore_;
    info.value = value;
    const auto call = application_.function<PFN_vkSignalSemaphoreKHR>("vkSignalSemaphoreKHR");
    vk::check(call(application_.device(), &info), "vkSignalSemaphoreKHR");
  }
  bool reaches(std::uint64_t value) const {
    auto info = vk::structure<VkSemaphoreWaitInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO_KHR);
    info.semaphoreCount = 1;
    info.pSemaphores = &semaphore_;
    info.pValues = &value;
    const auto call = application_.function<PFN_vkWaitSemaphoresKHR>("vkWaitSemaphoresKHR");
    constexpr std::uint64_t second = 1'000'000'000;
    return call(application_.device(), &info, 30 * second) == VK_SUCCESS;
  }

 private:
  const Application& application_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
};

/// What an application's debugger is told. The functions are the application's loader's, but for these three.
struct Told {
  std::set<std::string> names, labels;
  int open = 0;
};
Told& told() {
  static Told told;
  return told;
}
VKAPI_ATTR VkResult VKAPI_CALL set_name(VkDevice, const VkDebugUtilsObjectNameInfoEXT* info) {
  if (info->objectHandle != 0) told().names.insert(info->pObjectName);
  return VK_SUCCESS;
}
VKAPI_ATTR void VKAPI_CALL begin_label(VkCommandBuffer, const VkDebugUtilsLabelEXT* info) {
  told().labels.insert(info->pLabelName);
  ++told().open;
}
VKAPI_ATTR void VKAPI_CALL end_label(VkCommandBuffer) {
  --told().open;
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL listening(VkInstance instance, const char* name) {
  const std::string_view wanted(name);
  if (wanted == "vkSetDebugUtilsObjectNameEXT") return reinterpret_cast<PFN_vkVoidFunction>(&set_name);
  if (wanted == "vkCmdBeginDebugUtilsLabelEXT") return reinterpret_cast<PFN_vkVoidFunction>(&begin_label);
  if (wanted == "vkCmdEndDebugUtilsLabelEXT") return reinterpret_cast<PFN_vkVoidFunction>(&end_label);
  return vk::load_global().get_proc(instance, name);
}

/// Callbacks that count what lives.
struct HostMemory {
  std::atomic<int> living = 0;
  std::atomic<int> made = 0;
  VkAllocationCallbacks callbacks{this, &allocate, &reallocate, &release, nullptr, nullptr};

 private:
  static constexpr std::size_t head = 64;  // keeps the size, at any alignment that drivers ask for
  static VKAPI_ATTR void* VKAPI_CALL allocate(void* user, std::size_t size, std::size_t alignment,
                                              VkSystemAllocationScope) {
    if (alignment > head) return nullptr;
    auto* const memory = static_cast<std::byte*>(std::aligned_alloc(head, (size + 2 * head - 1) / head * head));
    if (memory == nullptr) return nullptr;
    std::memcpy(memory, &size, sizeof size);
    ++static_cast<HostMemory*>(user)->living;
    ++static_cast<HostMemory*>(user)->made;
    return memory + head;
  }
  static VKAPI_ATTR void* VKAPI_CALL reallocate(void* user, void* old, std::size_t size, std::size_t alignment,
                                                VkSystemAllocationScope scope) {
    void* const fresh = size > 0 ? allocate(user, size, alignment, scope) : nullptr;
    if (old == nullptr || (fresh == nullptr && size > 0)) return fresh;
    std::size_t had = 0;
    std::memcpy(&had, static_cast<std::byte*>(old) - head, sizeof had);
    if (fresh != nullptr) std::memcpy(fresh, old, std::min(had, size));
    release(user, old);
    return fresh;
  }
  static VKAPI_ATTR void VKAPI_CALL release(void* user, void* memory) {
    if (memory == nullptr) return;
    --static_cast<HostMemory*>(user)->living;
    std::free(static_cast<std::byte*>(memory) - head);
  }
};

}  // namespace

TEST_CASE("guest: steps read inputs from an application's memory, to the bits of steps that are given values") {
  Application application;
  const Device device = Device::adopt(application.handles());
  for (const auto& [columns, precision, offset, times] :
       {std::tuple(std::int64_t{3}, Precision::mixed(), 5, 2), std::tuple(std::int64_t{4}, Precision::float32(), 64, 1)}) {
    CAPTURE(columns);
    const auto first = static_cast<std::size_t>(offset);
    const std::vector<float> x = rows(batch * times, columns, 3);
    const std::vector<std::uint32_t> y = labels(batch * times);
    ApplicationBuffer memory(application, 4096);
    put(memory.floats(), first, x);
    put(memory.floats(), 512, y);
    TrainerOptions options;
    options.precision = precision;
    options.accumulate = times;
    Model given(columns), shared(columns);
    Trainer by_values = given.trainer(device, options);
    options.shared_inputs = {{"x", {.buffer = number(memory.handle()), .offset = 4 * first, .bytes = 4 * x.size()}},
                             {"y", {.buffer = number(memory.handle()), .offset = 2048, .bytes = 4 * y.size()}}};
    Trainer trainer = shared.trainer(device, options);
    for (int i = 0; i < 3; ++i) {
      by_values.step({{"x", std::span(x)}, {"y", std::span(y)}});
      trainer.step();
    }
    CHECK(weights(trainer) == weights(by_values));
    CHECK(trainer.report().loss == by_values.report().loss);
    while (!trainer.run_for(std::chrono::microseconds(1))) {
    }
    by_values.step({{"x", std::span(x)}, {"y", std::span(y)}});
    CHECK(weights(trainer) == weights(by_values));
    CHECK(trainer.report().step == 4);
  }
}

TEST_CASE("guest: a predictor reads and writes an application's memory, and nothing beside it") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  const std::vector<float> x = rows(batch, 3, 5);
  for (const Precision& precision : {Precision::float32(), Precision::mixed()}) {
    std::ranges::fill(memory.floats(), -7.0F);
    put(memory.floats(), 3, x);
    Model model(3), same(3);
    TrainerOptions options;
    options.precision = precision;
    Trainer trainer = model.trainer(device, options);
    const std::uint64_t buffer = number(memory.handle());
    const SharedBuffers shared{.inputs = {{"x", {.buffer = buffer, .offset = 12, .bytes = 4 * x.size()}}},
                               .output = DeviceBuffer{.buffer = buffer, .offset = 404, .bytes = 4 * batch * 5}};
    Predictor predictor = Predictor::compile(trainer, same.graph, same.logits, shared);
    const std::vector<float> expected =
        Predictor::compile(trainer, same.graph, same.logits).run({{"x", std::span(x)}});
    for (int i = 0; i < 3; ++i) predictor.submit();
    CHECK(predictor.run({}).empty());
    const std::span<float> all = memory.floats();
    CHECK(std::ranges::equal(all.subspan(101, batch * 5), expected));
    CHECK(std::ranges::all_of(all.subspan(101 + batch * 5), [](float v) { return v == -7.0F; }));
    CHECK(std::ranges::all_of(all.subspan(3 + x.size(), 98 - x.size()), [](float v) { return v == -7.0F; }));
  }
}

TEST_CASE("guest: an application's VkDeviceMemory is used without a buffer of its own") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  Model model(4);
  Trainer trainer = model.trainer(device, {});
  const auto range = [&](std::uint64_t offset, std::uint64_t bytes) {
    return DeviceBuffer{
        .memory = number(memory.memory()), .memory_type = memory.memory_type(), .offset = offset, .bytes = bytes};
  };
  const std::vector<float> x = rows(batch, 4, 6);
  put(memory.floats(), 256, x);
  Predictor predictor = Predictor::compile(trainer, model.graph, model.logits,
                                           {.inputs = {{"x", range(1024, 4 * x.size())}}, .output = range(2048, 512)});
  predictor.run({});
  const auto expected = Predictor::compile(trainer, model.graph, model.logits).run({{"x", std::span(x)}});
  CHECK(std::ranges::equal(memory.floats().subspan(512, expected.size()), expected));
  DeviceBuffer wrong = range(2049 * 4, 512);
  wrong.memory_type = 31;
  CHECK_THROWS_AS(Predictor::compile(trainer, model.graph, model.logits, {.inputs = {}, .output = wrong}), Error);
}

TEST_CASE("guest: an application's command buffer trains and predicts each time that it is submitted") {
  Application application;
  const Device device = Device::adopt(application.handles());
  ApplicationBuffer memory(application, 4096);
  const std::vector<float> x = rows(batch, 3, 8);
  const std::vector<std::uint32_t> y = labels(batch);
  put(memory.floats(), 0, x);
  put(memory.floats(), 128, y);
  const std::uint64_t buffer = number(memory.handle());
  const DeviceBuffer x_memory{.buffer = buffer, .bytes = 4 * x.size()};
  TrainerOptions options;
  options.shared_inputs = {{"x", x_memory}, {"y", {.buffer = buffer, .offset = 512, .bytes = 4 * y.size()}}};
  Model own(3), beside(3), predicted(3);
  Trainer steps = beside.trainer(device, options);
  Trainer trainer = own.trainer(device, options);
  Predictor predictor = Predictor::compile(
      trainer, predicted.graph, predicted.logits,
      {.inputs = {{"x", x_memory}}, .output = DeviceBuffer{.buffer = buffer, .offset = 1024, .bytes = 4 * batch * 5}});
  Commands commands(application);
  trainer.record(commands.handle());
  predictor.record(commands.handle());
  commands.end();
  for (int i = 0; i < 3; ++i) {
    commands.run();
    trainer.executed();
    steps.step();
  }
  CHECK(trainer.report().loss == steps.report().loss);
  trainer.step();  // both ways, in turns
  steps.step();
  commands.run();
  trainer.executed();
  steps.step();
  CHECK(weights(trainer) == weights(steps));
  CHECK(trainer.report().step == 5);
  const auto expected = Predictor::compile(steps, predicted.graph, predicted.logits).run({{"x", std::span(x)}});
  CHECK(std::ranges::equal(memory.floats().subspan(256, expected.size()), expected));
  // A prediction does not disturb a step that is open.
  Commands frame(application);
  predictor.record(frame.handle());
  frame.end();
  while (!trainer.run_for(std::chrono::microseconds(1))) frame.run();
  steps.step();
  CHECK(weights(trainer) == weights(steps));
}

TEST_CASE("guest: work waits for an application's semaphores, and signals them") {
  Application application;
  const Device device = Device::adopt(application.handles());
  Model model(3);
  Trainer trainer = model.trainer(device, {});
  const std::vector<float> x = rows(batch, 3, 8);
  const std::vector<std::uint32_t> y = labels(batch);
  const auto step = [&] { trainer.step({{"x", std::span(x)}, {"y", std::span(y)}}); };
  step();
  trainer.finish();
  const Semaphore there(application, false), back(application, false);
  auto info = vk::structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  const VkSemaphore signalled = there.handle();
  info.signalSemaphoreCount = 1;
  info.pSignalSemaphores = &signalled;
  application.submit(info);
  const QueueSemaphore waits[] = {there.binary()}, signals[] = {back.binary()};
  device.wait_for(waits);
  step();
  device.signal(signals);
  info = vk::structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  const VkSemaphore awaited = back.handle();
  const VkPipelineStageFlags stage = VK_PIPELINE_STAGE_TRANSFER_BIT;
  info.waitSemaphoreCount = 1;
  info.pWaitSemaphores = &awaited;
  info.pWaitDstStageMask = &stage;
  application.submit(info);
  application.wait_idle();
  CHECK(trainer.report().step == 2);
  if (!application.has_timelines()) return;
  const Semaphore timeline(application, true);
  const QueueSemaphore from[] = {timeline.at(4)}, to[] = {timeline.at(9)};
  device.wait_for(from);
  step();
  device.signal(to);
  CHECK(trainer.report().step == 2);  // it waits
  timeline.signal(4);
  CHECK(timeline.reaches(9));
  trainer.finish();
  CHECK(trainer.report().step == 3);
}

TEST_CASE("guest: an application's debugger is told the names of objects and what is dispatched") {
  Application application;
  AdoptedDevice handles = application.handles();
  handles.debug_utils = true;
  handles.get_instance_proc_addr = reinterpret_cast<void (*)()>(&listening);
  told() = {};
  const Device device = Device::adopt(handles);
  Model model(3);
  Trainer trainer = model.trainer(device, {});
  CHECK(told().names.contains("arena"));
  CHECK(told().names.contains("weights"));
  CHECK(std::ranges::any_of(told().names, [](const std::string& name) { return name.starts_with("adam"); }));
  CHECK(std::ranges::any_of(told().labels, [](const std::string& name) { return name.starts_with("first"); }));
  CHECK(told().open == 0);
}

TEST_CASE("guest: every object is made with the application's allocator, and given back to it") {
  testing::FaultyVulkan vulkan;
  HostMemory host;
  {
    Application application;
    vulkan.plan(std::nullopt);
    AdoptedDevice handles = application.handles();
    handles.allocator = &host.callbacks;
    {
      const Device device = Device::adopt(handles);
      Model model(3);
      Trainer trainer = model.trainer(device, {});
      const std::vector<float> x = rows(batch, 3, 8);
      const std::vector<std::uint32_t> y = labels(batch);
      trainer.step({{"x", std::span(x)}, {"y", std::span(y)}});
      CHECK(weights(trainer).size() == 3 * 8 + 8 + 8 * 5 + 5);
    }
    CHECK(vulkan.allocators() == std::set<const void*>{&host.callbacks});
    CHECK(vulkan.misuse().empty());
    CHECK(vulkan.living().empty());
    CHECK(host.made > 10);
    CHECK(application.works());
  }
  CHECK(host.living == 0);
}

TEST_CASE("guest: what cannot be shared is refused") {
  Application application;
  AdoptedDevice handles = application.handles();
  handles.timeline_semaphore = false;
  const Device device = Device::adopt(handles);
  ApplicationBuffer memory(application, 4096);
  const std::uint64_t buffer = number(memory.handle());
  Model model(3);
  Trainer trainer = model.trainer(device, {});
  const auto sharing = [&](const DeviceBuffer& range) {
    Predictor::compile(trainer, model.graph, model.logits, {.inputs = {{"x", range}}, .output = {}});
  };
  CHECK_THROWS_WITH_AS(sharing({.buffer = buffer, .bytes = 68}),
                       doctest::Contains("expected 72 bytes for 'x' f32 {6, 3}, got 68"), Error);
  CHECK_THROWS_WITH_AS(sharing({.buffer = buffer, .offset = 2, .bytes = 72}), doctest::Contains("multiple of 4"), Error);
  CHECK_THROWS_WITH_AS(sharing({.bytes = 72}), doctest::Contains("expected a buffer or memory for 'x', got none"), Error);
  CHECK_THROWS_WITH_AS(Predictor::compile(trainer, model.graph, model.logits,
                                          {.inputs = {{"z", {.buffer = buffer, .bytes = 72}}}, .output = {}}),
                       doctest::Contains("some for 'z'"), Error);
  Commands commands(application);
  CHECK_THROWS_WITH_AS(trainer.record(commands.handle()), doctest::Contains("inputs are all shared"), Error);
  CHECK_THROWS_WITH_AS(trainer.record(nullptr), doctest::Contains("got null"), Error);
  CHECK_THROWS_WITH_AS(trainer.executed(), doctest::Contains("expected a run that was recorded"), Error);
  Predictor plain = Predictor::compile(trainer, model.graph, model.logits);
  CHECK_THROWS_WITH_AS(plain.record(commands.handle()), doctest::Contains("in shared memory"), Error);
  CHECK_THROWS_WITH_AS(plain.submit(), doctest::Contains("in shared memory"), Error);
  commands.end();
  const QueueSemaphore timeline[] = {{1, 1}}, none[] = {{}};
  CHECK_THROWS_WITH_AS(device.signal(timeline), doctest::Contains("expected a binary semaphore"), Error);
  CHECK_THROWS_WITH_AS(device.wait_for(none), doctest::Contains("got null"), Error);
  CHECK_THROWS_WITH_AS(Device::open().wait_for(timeline), doctest::Contains("expected an adopted device"), Error);
  TrainerOptions options;
  options.shared_inputs = {{"x", {.buffer = buffer, .bytes = 72}}};
  Model another(3);
  Trainer shared = another.trainer(device, options);
  CHECK_THROWS_WITH_AS(shared.reopen(device), doctest::Contains("without shared inputs"), Error);
}

TEST_CASE("guest: a queue of low priority is asked for, and the device says whether it is one") {
  const Device low = Device::open(testing::device().info().name, {.low_priority = true});
  const std::string priority = low.info().queue_priority;
  CHECK((priority == "low" || priority.starts_with("default: ")));
  CHECK(testing::device().info().queue_priority.empty());
  Model model(3);
  Trainer trainer = model.trainer(low, {});
  const std::vector<float> x = rows(batch, 3, 8);
  const std::vector<std::uint32_t> y = labels(batch);
  trainer.step({{"x", std::span(x)}, {"y", std::span(y)}});
  trainer.finish();
  MESSAGE("queue priority: " << priority);
}
