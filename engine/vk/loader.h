#pragma once

#include <volk.h>

#include <cstdint>

namespace halfstep::vk {

/// The functions of one instance. volk's own globals belong to whichever instance loaded last, so each context keeps
/// its own table: two of them, or an application's own, never meet.
struct InstanceTable {
  VkInstance instance = VK_NULL_HANDLE;
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc = nullptr;
  PFN_vkDestroyInstance destroy_instance = nullptr;
  PFN_vkEnumeratePhysicalDevices enumerate_physical_devices = nullptr;
  PFN_vkEnumerateDeviceExtensionProperties enumerate_device_extensions = nullptr;
  PFN_vkGetPhysicalDeviceProperties properties_1_0 = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 properties = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 features = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties memory_properties = nullptr;
  PFN_vkGetPhysicalDeviceQueueFamilyProperties queue_families = nullptr;
  PFN_vkCreateDevice create_device = nullptr;

  // Only of an instance that create_instance made to be validated.
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger = nullptr;
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
};

/// The functions that exist before any instance does.
struct GlobalTable {
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkCreateInstance create_instance = nullptr;
  PFN_vkEnumerateInstanceExtensionProperties extensions = nullptr;
  PFN_vkEnumerateInstanceLayerProperties layers = nullptr;
};

/// Finds the machine's Vulkan loader. Throws Error where it has none, or one older than Vulkan 1.1.
GlobalTable load_global();

/// Whether load_global has been called in this process.
bool loader_in_use();

/// The functions of `instance`.
InstanceTable load_instance(VkInstance instance, PFN_vkGetInstanceProcAddr get_proc);

/// The functions of a device made from `instance`.
VolkDeviceTable load_device(const InstanceTable& instance, VkDevice device);

}  // namespace halfstep::vk
