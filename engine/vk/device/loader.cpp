#include "vk/device/loader.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <atomic>
#include <mutex>

#include "base/library.h"

namespace halfstep::vk {
namespace {

std::atomic<bool> in_use = false;
std::atomic<PFN_vkGetInstanceProcAddr> replacement = nullptr;
std::mutex child_mutex;
std::shared_ptr<process::Child> child;

#if defined(__APPLE__)
constexpr auto loaders = {"libvulkan.dylib", "libvulkan.1.dylib", "libMoltenVK.dylib"};
#else
constexpr auto loaders = {"libvulkan.so.1", "libvulkan.so"};
#endif

PFN_vkGetInstanceProcAddr find_loader() {
  in_use = true;
  if (const PFN_vkGetInstanceProcAddr get_proc = replacement) return get_proc;
  static const auto found =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(process::find_function(loaders, "vkGetInstanceProcAddr"));
  if (found == nullptr) {
    fail(ErrorCode::system, "device", "expected a Vulkan loader, got none",
         "install it, on Debian or Ubuntu: apt install libvulkan1 mesa-vulkan-drivers");
  }
  return found;
}

/// Sets `function` to the result of `get_proc` for `owner`, an instance (null for global functions) or a device.
template <typename Function, typename GetProc, typename Owner>
void load(Function& function, GetProc get_proc, Owner owner, const char* name) {
  function = reinterpret_cast<Function>(get_proc(owner, name));
  if (function == nullptr) {
    fail(ErrorCode::unsupported, "device", fmt::format("expected Vulkan 1.1 or later, got a version without {}", name),
         "update the Vulkan loader and drivers");
  }
}

}  // namespace

GlobalTable load_global() {
  GlobalTable table;
  table.get_proc = find_loader();
  PFN_vkEnumerateInstanceVersion version = nullptr;  // added in Vulkan 1.1
  load(version, table.get_proc, nullptr, "vkEnumerateInstanceVersion");
  load(table.create_instance, table.get_proc, nullptr, "vkCreateInstance");
  load(table.extensions, table.get_proc, nullptr, "vkEnumerateInstanceExtensionProperties");
  load(table.layers, table.get_proc, nullptr, "vkEnumerateInstanceLayerProperties");
  return table;
}

void replace_loader(PFN_vkGetInstanceProcAddr get_proc) {
  replacement = get_proc;
}

std::shared_ptr<process::Child> child_without_drivers() {
  const std::lock_guard lock(child_mutex);
  if (!child && !in_use && !process::has_loaded(loaders)) child = std::make_shared<process::Child>();
  return child;
}

void end_child_without_drivers() {
  const std::lock_guard lock(child_mutex);
  child.reset();
}

InstanceTable load_instance(VkInstance instance, PFN_vkGetInstanceProcAddr get_proc) {
  InstanceTable table;
  table.instance = instance;
  table.get_proc = get_proc;
  load(table.get_device_proc, get_proc, instance, "vkGetDeviceProcAddr");
  load(table.enumerate_physical_devices, get_proc, instance, "vkEnumeratePhysicalDevices");
  load(table.enumerate_device_extensions, get_proc, instance, "vkEnumerateDeviceExtensionProperties");
  load(table.properties_1_0, get_proc, instance, "vkGetPhysicalDeviceProperties");
  load(table.properties, get_proc, instance, "vkGetPhysicalDeviceProperties2");
  load(table.features, get_proc, instance, "vkGetPhysicalDeviceFeatures2");
  load(table.memory_properties, get_proc, instance, "vkGetPhysicalDeviceMemoryProperties");
  load(table.memory_properties2, get_proc, instance, "vkGetPhysicalDeviceMemoryProperties2");
  load(table.queue_families, get_proc, instance, "vkGetPhysicalDeviceQueueFamilyProperties");
  load(table.create_device, get_proc, instance, "vkCreateDevice");
  return table;
}

DeviceTable load_device(const InstanceTable& instance, VkDevice device) {
  DeviceTable table;
#define HALFSTEP_LOAD(name) load(table.name, instance.get_device_proc, device, #name);
  HALFSTEP_DEVICE_FUNCTIONS(HALFSTEP_LOAD)
#undef HALFSTEP_LOAD
  const auto load_optional = [&]<typename Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(instance.get_device_proc(device, name));
  };
  load_optional(table.vkGetBufferDeviceAddressKHR, "vkGetBufferDeviceAddressKHR");
  load_optional(table.vkGetPipelineExecutablePropertiesKHR, "vkGetPipelineExecutablePropertiesKHR");
  load_optional(table.vkGetPipelineExecutableStatisticsKHR, "vkGetPipelineExecutableStatisticsKHR");
  load_optional(table.vkGetPipelineExecutableInternalRepresentationsKHR,
                "vkGetPipelineExecutableInternalRepresentationsKHR");
  return table;
}

void load_debug_utils(DeviceTable& table, const InstanceTable& instance) {
  const auto load_named = [&]<typename Function>(Function& function, const char* name) {
    function = reinterpret_cast<Function>(instance.get_proc(instance.instance, name));
    if (function != nullptr) return;
    fail("device", fmt::format("expected an instance with VK_EXT_debug_utils, got one without {}", name),
         "AdoptedDevice::debug_utils says that the application enabled it");
  };
  load_named(table.vkSetDebugUtilsObjectNameEXT, "vkSetDebugUtilsObjectNameEXT");
  load_named(table.vkCmdBeginDebugUtilsLabelEXT, "vkCmdBeginDebugUtilsLabelEXT");
  load_named(table.vkCmdEndDebugUtilsLabelEXT, "vkCmdEndDebugUtilsLabelEXT");
}

void destroy_device(const InstanceTable& instance, VkDevice device) noexcept {
  if (device == VK_NULL_HANDLE) return;
  const auto destroy = reinterpret_cast<PFN_vkDestroyDevice>(instance.get_device_proc(device, "vkDestroyDevice"));
  if (destroy != nullptr) destroy(device, nullptr);
}

}  // namespace halfstep::vk
