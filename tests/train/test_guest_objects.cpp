// An application's semaphores, allocator, debugger and queue.
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
#include "train/guest_model.h"
#include "vk/device/loader.h"
#include "vk/device/structure.h"

using namespace halfstep;
using namespace halfstep::testing::guest;
using testing::Application;
using testing::Semaphore;

namespace {

/// Of a barrier: stages before and after it, and what they access.
using Masks = std::array<std::uint32_t, 4>;

/// What an application's debugger is told, and what is recorded: "B" a barrier for all stages, "b" any other, "d" a
/// dispatch, "|" where another command buffer begins.
struct Told {
  std::set<std::string> names, labels;
  int open = 0;
  std::string recorded;
  std::set<Masks> barriers;
  PFN_vkGetDeviceProcAddr device_proc = nullptr;
  PFN_vkBeginCommandBuffer begin = nullptr;
  PFN_vkCmdPipelineBarrier barrier = nullptr;
  PFN_vkCmdDispatch dispatch = nullptr;
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
VKAPI_ATTR VkResult VKAPI_CALL begin(VkCommandBuffer commands, const VkCommandBufferBeginInfo* info) {
  told().recorded += '|';
  return told().begin(commands, info);
}
VKAPI_ATTR void VKAPI_CALL barrier(VkCommandBuffer commands, VkPipelineStageFlags from, VkPipelineStageFlags to,
                                   VkDependencyFlags flags, std::uint32_t count, const VkMemoryBarrier* memory,
                                   std::uint32_t, const VkBufferMemoryBarrier*, std::uint32_t,
                                   const VkImageMemoryBarrier*) {
  const bool all = from == VK_PIPELINE_STAGE_ALL_COMMANDS_BIT && to == from && count == 1 &&
                   memory->srcAccessMask == VK_ACCESS_MEMORY_WRITE_BIT &&
                   memory->dstAccessMask == (VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT);
  told().recorded += all ? 'B' : 'b';
  told().barriers.insert({from, to, memory->srcAccessMask, memory->dstAccessMask});
  told().barrier(commands, from, to, flags, count, memory, 0, nullptr, 0, nullptr);
}
VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  told().recorded += 'd';
  told().dispatch(commands, x, y, z);
}
/// The driver's function, and one that tells of it before it calls that.
template <typename Function>
PFN_vkVoidFunction between(Function& own, PFN_vkVoidFunction found, Function told_of) {
  own = reinterpret_cast<Function>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(told_of);
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL listening_device(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = told().device_proc(device, name);
  const std::string_view wanted(name);
  if (wanted == "vkBeginCommandBuffer") return between(told().begin, found, &begin);
  if (wanted == "vkCmdPipelineBarrier") return between(told().barrier, found, &barrier);
  if (wanted == "vkCmdDispatch") return between(told().dispatch, found, &dispatch);
  return found;
}
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL listening(VkInstance instance, const char* name) {
  const std::string_view wanted(name);
  if (wanted == "vkGetDeviceProcAddr") {
    return between(told().device_proc, vk::load_global().get_proc(instance, name), &listening_device);
  }
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
  CHECK_FALSE(timeline.reaches(9, std::chrono::milliseconds(50)));
  CHECK(trainer.report().step == 2);  // it waits
  timeline.signal(4);
  CHECK(timeline.reaches(9, std::chrono::seconds(30)));
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

TEST_CASE("guest: whatever touches an application's memory lies between barriers for all stages") {
  Application application;
  testing::ApplicationBuffer memory(application, 4096);
  AdoptedDevice handles = application.handles();
  handles.get_instance_proc_addr = reinterpret_cast<void (*)()>(&listening);
  told() = {};
  const Device device = Device::adopt(handles);
  const std::uint64_t buffer = testing::number(memory.handle());
  const auto pieces = [](const std::string& recorded) {
    std::vector<std::string> list;
    for (const char each : recorded) {
      if (each == '|') list.emplace_back();
      if (each != '|' && !list.empty()) list.back() += each;
    }
    std::erase_if(list, [](const std::string& piece) { return piece.find('d') == std::string::npos; });
    return list;
  };
  const auto lies_between = [](const std::string& piece) { return piece.starts_with('B') && piece.ends_with('B'); };
  Model plain(3), shared(3);
  Trainer by_values = plain.trainer(device, {});
  for (const std::string& piece : pieces(told().recorded)) {
    CHECK_MESSAGE(piece.find('B') == std::string::npos, piece);
    CHECK_MESSAGE(piece.starts_with('b'), piece);  // after the step before
  }
  constexpr std::uint32_t kernels = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, copies = VK_PIPELINE_STAGE_TRANSFER_BIT;
  constexpr std::uint32_t stored = VK_ACCESS_SHADER_WRITE_BIT, copied = VK_ACCESS_TRANSFER_WRITE_BIT;
  constexpr std::uint32_t loaded = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT;
  constexpr std::uint32_t all = loaded | VK_ACCESS_TRANSFER_READ_BIT | stored | copied;
  CHECK(told().barriers ==
        std::set<Masks>{{kernels, kernels, stored, loaded | stored},
                        {kernels | copies, kernels | copies, stored | copied, all},
                        {kernels | copies, VK_PIPELINE_STAGE_HOST_BIT, stored | copied, VK_ACCESS_HOST_READ_BIT}});
  told().recorded.clear();
  TrainerOptions options;
  options.shared_inputs = {{"x", {.buffer = buffer, .bytes = 4 * batch * 3}},
                           {"y", {.buffer = buffer, .offset = 512, .bytes = 4 * batch}}};
  Trainer trainer = shared.trainer(device, options);
  trainer.run_for(std::chrono::nanoseconds(1));  // in many pieces
  trainer.finish();
  const std::vector<std::string> cut = pieces(told().recorded);
  CHECK(cut.size() > 6);
  for (const std::string& piece : cut) CHECK_MESSAGE(lies_between(piece), piece);
  testing::Commands commands(application);
  trainer.record(commands.handle());  // the first makes a recording of its own, too
  told().recorded = "|";
  trainer.record(commands.handle());
  CHECK_MESSAGE(lies_between(pieces(told().recorded).at(0)), told().recorded);
  commands.end();
}

TEST_CASE("guest: every object is made with the application's allocator, and given back to it") {
  testing::FaultyVulkan vulkan;
  HostMemory host;
  {
    Application application;
    const testing::ApplicationBuffer memory(application, 4096);
    vulkan.plan(std::nullopt);  // what lives now is the application's
    AdoptedDevice handles = application.handles();
    handles.allocator = &host.callbacks;
    {
      const Device device = Device::adopt(handles);
      Model model(3);
      TrainerOptions options;
      options.shared_inputs = {{"x", {.buffer = testing::number(memory.handle()), .bytes = 4 * batch * 3}}};
      put(memory.floats(), 0, rows(batch, 3, 8));
      Trainer trainer = model.trainer(device, options);
      const std::vector<std::uint32_t> y = labels(batch);
      trainer.step({{"y", std::span(y)}});
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
