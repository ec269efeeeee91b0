#pragma once

#include <vulkan/vulkan.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "base/child.h"

namespace halfstep::vk {

/// The functions of one instance. Each context keeps its own tables, and the library defines no Vulkan symbols. So
/// several contexts, and an application that calls Vulkan itself, do not affect each other.
struct InstanceTable {
  VkInstance instance = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc = nullptr;
  PFN_vkEnumeratePhysicalDevices enumerate_physical_devices = nullptr;
  PFN_vkEnumerateDeviceExtensionProperties enumerate_device_extensions = nullptr;
  PFN_vkGetPhysicalDeviceProperties properties_1_0 = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 properties = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 features = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties memory_properties = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties2 memory_properties2 = nullptr;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties queue_families = nullptr;
  PFN_vkCreateDevice create_device = nullptr;

  // Set only if create_instance enabled validation.
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger = nullptr;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
};

/// The device functions that the engine calls: F(name) for each. Add a line here for another one.
#define HALFSTEP_DEVICE_FUNCTIONS(F) \
  F(vkAllocateCommandBuffers)        \
  F(vkAllocateDescriptorSets)        \
  F(vkAllocateMemory)                \
  F(vkBeginCommandBuffer)            \
  F(vkBindBufferMemory)              \
  F(vkCmdBindDescriptorSets)         \
  F(vkCmdBindPipeline)               \
  F(vkCmdCopyBuffer)                 \
  F(vkCmdDispatch)                   \
  F(vkCmdFillBuffer)                 \
  F(vkCmdPipelineBarrier)            \
  F(vkCmdPushConstants)              \
  F(vkCmdResetQueryPool)             \
  F(vkCmdWriteTimestamp)             \
  F(vkCreateBuffer)                  \
  F(vkCreateBufferView)              \
  F(vkCreateCommandPool)             \
  F(vkCreateComputePipelines)        \
  F(vkCreateDescriptorPool)          \
  F(vkCreateDescriptorSetLayout)     \
  F(vkCreateFence)                   \
  F(vkCreatePipelineCache)           \
  F(vkCreatePipelineLayout)          \
  F(vkCreateQueryPool)               \
  F(vkCreateShaderModule)            \
  F(vkDestroyBuffer)                 \
  F(vkDestroyBufferView)             \
  F(vkDestroyCommandPool)            \
  F(vkDestroyDescriptorPool)         \
  F(vkDestroyDescriptorSetLayout)    \
  F(vkDestroyFence)                  \
  F(vkDestroyPipeline)               \
  F(vkDestroyPipelineCache)          \
  F(vkDestroyPipelineLayout)         \
  F(vkDestroyQueryPool)              \
  F(vkDestroyShaderModule)           \
  F(vkEndCommandBuffer)              \
  F(vkFlushMappedMemoryRanges)       \
  F(vkFreeMemory)                    \
  F(vkGetBufferMemoryRequirements)   \
  F(vkGetDeviceQueue)                \
  F(vkGetFenceStatus)                \
  F(vkGetPipelineCacheData)          \
  F(vkGetQueryPoolResults)           \
  F(vkInvalidateMappedMemoryRanges)  \
  F(vkMapMemory)                     \
  F(vkQueueSubmit)                   \
  F(vkResetCommandPool)              \
  F(vkResetFences)                   \
  F(vkUpdateDescriptorSets)          \
  F(vkWaitForFences)

/// The functions of one device.
struct DeviceTable {
#define HALFSTEP_MEMBER(name) PFN_##name name = nullptr;
  HALFSTEP_DEVICE_FUNCTIONS(HALFSTEP_MEMBER)
#undef HALFSTEP_MEMBER

  // Null if the device was created without VK_KHR_buffer_device_address.
  PFN_vkGetBufferDeviceAddressKHR vkGetBufferDeviceAddressKHR = nullptr;
  // Likewise of VK_KHR_pipeline_executable_properties.
  PFN_vkGetPipelineExecutablePropertiesKHR vkGetPipelineExecutablePropertiesKHR = nullptr;
  PFN_vkGetPipelineExecutableStatisticsKHR vkGetPipelineExecutableStatisticsKHR = nullptr;
  PFN_vkGetPipelineExecutableInternalRepresentationsKHR vkGetPipelineExecutableInternalRepresentationsKHR = nullptr;
  // Set by load_debug_utils only.
  PFN_vkSetDebugUtilsObjectNameEXT vkSetDebugUtilsObjectNameEXT = nullptr;
  PFN_vkCmdBeginDebugUtilsLabelEXT vkCmdBeginDebugUtilsLabelEXT = nullptr;
  PFN_vkCmdEndDebugUtilsLabelEXT vkCmdEndDebugUtilsLabelEXT = nullptr;
};

/// The functions that exist before an instance is created.
struct GlobalTable {
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkCreateInstance create_instance = nullptr;
  PFN_vkEnumerateInstanceExtensionProperties extensions = nullptr;
  PFN_vkEnumerateInstanceLayerProperties layers = nullptr;
};

/// Loads the system's Vulkan loader. Throws Error if there is none, or it is older than Vulkan 1.1.
GlobalTable load_global();

/// For tests: an entry point to use from now on in place of the system's loader; null ends that.
void replace_loader(PFN_vkGetInstanceProcAddr get_proc);

/// The one child of this process for work that may crash a driver, forked by the first call; null if anyone has loaded
/// Vulkan before. NVIDIA's driver does not survive a fork: when the child of a process that has a device calls it or
/// ends, that device is lost (driver 580, H200).
std::shared_ptr<process::Child> child_without_drivers();
/// What it may take for one piece of work. The first one loads the drivers, maybe from a slow disk.
constexpr std::chrono::seconds child_limit(60);
/// Ends it, once nobody who was given it has it any more: for a machine where it is of no use.
void end_child_without_drivers();

/// The functions of `instance`. Throws Error if one is missing.
InstanceTable load_instance(VkInstance instance, PFN_vkGetInstanceProcAddr get_proc);

/// The functions of a device created from `instance`. Throws Error if one is missing.
DeviceTable load_device(const InstanceTable& instance, VkDevice device);

/// The functions of VK_EXT_debug_utils, where the instance was created with it. Throws Error if one is missing.
void load_debug_utils(DeviceTable& table, const InstanceTable& instance);

/// Destroys a device created from `instance`, also one whose functions could not all be loaded. No-op for null.
void destroy_device(const InstanceTable& instance, VkDevice device) noexcept;

}  // namespace halfstep::vk
