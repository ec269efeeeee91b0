#pragma once

#include <string>

#include "vk/device/capabilities.h"
#include "vk/device/loader.h"

namespace halfstep::vk {

/// Creates a device with one queue of low global priority, where the driver has such queues and permits one; otherwise
/// as `info` says. `info` must have one VkDeviceQueueCreateInfo. Returns DeviceInfo::queue_priority; throws Error if
/// there can be no device either way.
std::string create_low_priority_device(const InstanceTable& instance, VkPhysicalDevice physical_device,
                                       const Capabilities& capabilities, const VkDeviceCreateInfo& info,
                                       VkDevice& device);

}  // namespace halfstep::vk
