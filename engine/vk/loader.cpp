#include "vk/loader.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <atomic>
#include <mutex>

namespace halfstep::vk {
namespace {

/// Guards volk's globals.
std::mutex& volk_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::atomic<bool> in_use = false;

PFN_vkGetInstanceProcAddr find_loader() {
  in_use = true;
  const std::lock_guard lock(volk_mutex());
  static const VkResult result = volkInitialize();
  static const PFN_vkGetInstanceProcAddr found = vkGetInstanceProcAddr;
  if (result != VK_SUCCESS || found == nullptr) {
    fail("device", "expected a Vulkan loader, got none",
         "install it, on Debian or Ubuntu: apt install libvulkan1 mesa-vulkan-drivers");
  }
  return found;
}

template <typename Function>
void load(Function& function, PFN_vkGetInstanceProcAddr get_proc, VkInstance instance, const char* name) {
  function = reinterpret_cast<Function>(get_proc(instance, name));
  if (function == nullptr) {
    fail("device", fmt::format("expected Vulkan 1.1 or later, got a loader or instance without {}", name),
         "update the Vulkan loader and drivers");
  }
}

}  // namespace

GlobalTable load_global() {
  GlobalTable table;
  table.get_proc = find_loader();
  PFN_vkEnumerateInstanceVersion version = nullptr;  // new in Vulkan 1.1
  load(version, table.get_proc, nullptr, "vkEnumerateInstanceVersion");
  load(table.create_instance, table.get_proc, nullptr, "vkCreateInstance");
  load(table.extensions, table.get_proc, nullptr, "vkEnumerateInstanceExtensionProperties");
  load(table.layers, table.get_proc, nullptr, "vkEnumerateInstanceLayerProperties");
  return table;
}

bool loader_in_use() {
  return in_use;
}

InstanceTable load_instance(VkInstance instance, PFN_vkGetInstanceProcAddr get_proc) {
  InstanceTable table;
  table.instance = instance;
  table.get_proc = get_proc;
  load(table.get_device_proc, get_proc, instance, "vkGetDeviceProcAddr");
  load(table.destroy_instance, get_proc, instance, "vkDestroyInstance");
  load(table.enumerate_physical_devices, get_proc, instance, "vkEnumeratePhysicalDevices");
  load(table.enumerate_device_extensions, get_proc, instance, "vkEnumerateDeviceExtensionProperties");
  load(table.properties_1_0, get_proc, instance, "vkGetPhysicalDeviceProperties");
  load(table.properties, get_proc, instance, "vkGetPhysicalDeviceProperties2");
  load(table.features, get_proc, instance, "vkGetPhysicalDeviceFeatures2");
  load(table.memory_properties, get_proc, instance, "vkGetPhysicalDeviceMemoryProperties");
  load(table.queue_families, get_proc, instance, "vkGetPhysicalDeviceQueueFamilyProperties");
  load(table.create_device, get_proc, instance, "vkCreateDevice");
  return table;
}

VolkDeviceTable load_device(const InstanceTable& instance, VkDevice device) {
  const std::lock_guard lock(volk_mutex());
  VolkDeviceTable table{};
  // volk asks through a global; it is put back, since a program that links volk too may share it.
  const PFN_vkGetDeviceProcAddr before = vkGetDeviceProcAddr;
  vkGetDeviceProcAddr = instance.get_device_proc;
  volkLoadDeviceTable(&table, device);
  vkGetDeviceProcAddr = before;
  return table;
}

}  // namespace halfstep::vk
