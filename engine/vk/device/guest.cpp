// What a context does for the application whose device it has adopted: semaphores, and names for its debugger.
#include <halfstep/error.h>

#include <fmt/format.h>

#include "vk/device/context.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {
namespace {

/// Semaphores as VkSubmitInfo takes them; those that are not of a timeline have a value that is not read.
struct Semaphores {
  Semaphores(std::span<const QueueSemaphore> given, bool adopted, bool timelines) {
    if (!adopted) fail("device", "expected an adopted device for an application's semaphores, got one of its own");
    for (const QueueSemaphore& each : given) {
      if (each.semaphore == 0) fail("device", "expected the application's semaphore, got null");
      if (each.value && !timelines) {
        fail("device", "expected a binary semaphore, got one with a value",
             "AdoptedDevice::timeline_semaphore says that the application enabled VK_KHR_timeline_semaphore");
      }
      handles.push_back((VkSemaphore)each.semaphore);  // NOLINT: a pointer or a number
      values.push_back(each.value.value_or(0));
      has_timeline = has_timeline || each.value.has_value();
    }
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(handles.size()); }

  std::vector<VkSemaphore> handles;
  std::vector<std::uint64_t> values;
  bool has_timeline = false;
};

}  // namespace

void Context::wait_for(std::span<const QueueSemaphore> semaphores) {
  const Semaphores all(semaphores, !owned_, timeline_semaphores_);
  if (semaphores.empty()) return;
  const std::vector<VkPipelineStageFlags> stages(semaphores.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
  auto values = structure<VkTimelineSemaphoreSubmitInfoKHR>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO_KHR);
  values.waitSemaphoreValueCount = all.count();
  values.pWaitSemaphoreValues = all.values.data();
  auto batch = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  if (all.has_timeline) batch.pNext = &values;
  batch.waitSemaphoreCount = all.count();
  batch.pWaitSemaphores = all.handles.data();
  batch.pWaitDstStageMask = stages.data();
  submit(std::span(&batch, 1), VK_NULL_HANDLE);
}

void Context::signal(std::span<const QueueSemaphore> semaphores) {
  const Semaphores all(semaphores, !owned_, timeline_semaphores_);
  if (semaphores.empty()) return;
  auto values = structure<VkTimelineSemaphoreSubmitInfoKHR>(VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO_KHR);
  values.signalSemaphoreValueCount = all.count();
  values.pSignalSemaphoreValues = all.values.data();
  auto batch = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  if (all.has_timeline) batch.pNext = &values;
  batch.signalSemaphoreCount = all.count();
  batch.pSignalSemaphores = all.handles.data();
  submit(std::span(&batch, 1), VK_NULL_HANDLE);
}

/// A name is a help and no result: that there is no memory for it is no failure.
void Context::name_object(VkObjectType type, std::uint64_t handle, const std::string& text) const {
  auto info = structure<VkDebugUtilsObjectNameInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT);
  info.objectType = type;
  info.objectHandle = handle;
  info.pObjectName = text.c_str();
  table_.vkSetDebugUtilsObjectNameEXT(device_, &info);
}

}  // namespace halfstep::vk
