#include "vk/device/queue_priority.h"

#include <fmt/format.h>

#include <vector>

#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {

std::string create_low_priority_device(const InstanceTable& instance, VkPhysicalDevice physical_device,
                                       const Capabilities& capabilities, const VkDeviceCreateInfo& info,
                                       VkDevice& device) {
  const auto create = [&](const VkDeviceCreateInfo& with) {
    VkDevice made = VK_NULL_HANDLE;
    const VkResult result = instance.create_device(physical_device, &with, nullptr, &made);
    if (result == VK_SUCCESS) device = made;
    return result;
  };
  if (capabilities.global_priority == nullptr) {
    check(create(info), "vkCreateDevice");
    return "default: the driver has no VK_KHR_global_priority";
  }
  auto low = structure<VkDeviceQueueGlobalPriorityCreateInfoEXT>(
      VK_STRUCTURE_TYPE_DEVICE_QUEUE_GLOBAL_PRIORITY_CREATE_INFO_EXT);
  low.globalPriority = VK_QUEUE_GLOBAL_PRIORITY_LOW_EXT;
  VkDeviceQueueCreateInfo queue = *info.pQueueCreateInfos;
  queue.pNext = &low;
  std::vector<const char*> extensions(info.ppEnabledExtensionNames,
                                      info.ppEnabledExtensionNames + info.enabledExtensionCount);
  extensions.push_back(capabilities.global_priority);
  VkDeviceCreateInfo wanted = info;
  wanted.pQueueCreateInfos = &queue;
  wanted.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  wanted.ppEnabledExtensionNames = extensions.data();
  const VkResult result = create(wanted);
  if (result == VK_SUCCESS) return "low";
  // Some drivers do not permit it, or have it for other families of queues only.
  if (result != VK_ERROR_NOT_PERMITTED_EXT && result != VK_ERROR_INITIALIZATION_FAILED) check(result, "vkCreateDevice");
  check(create(info), "vkCreateDevice");
  return fmt::format("default: the driver answered {} to a low one", name(result));
}

}  // namespace halfstep::vk
