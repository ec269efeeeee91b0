#include "harness/as_gpu.h"

#include <string_view>

#include "harness/device.h"
#include "vk/device/loader.h"

namespace halfstep::testing {
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

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL function_of_gpu(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = entries().get_proc(instance, name);
  if (std::string_view(name) != "vkGetPhysicalDeviceProperties") return found;
  entries().properties = reinterpret_cast<PFN_vkGetPhysicalDeviceProperties>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(&properties_of_gpu);
}

}  // namespace

AsGpu::AsGpu() {
  device();  // is opened without this
  entries().get_proc = vk::load_global().get_proc;
  vk::replace_loader(&function_of_gpu);
}

AsGpu::~AsGpu() {
  vk::replace_loader(nullptr);
}

}  // namespace halfstep::testing
