#include "vk/device/instance.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "vk/device/manifest.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"
#include "vk/device/validation.h"

namespace halfstep::vk {
namespace {

constexpr const char* validation_layer = "VK_LAYER_KHRONOS_validation";

/// Throws Error for a loader call that fails before there is an instance. The loader reports out of memory if it cannot
/// parse a driver's manifest.
void check_loader(VkResult result, std::string_view call) {
  if (result != VK_ERROR_OUT_OF_HOST_MEMORY && result != VK_ERROR_INCOMPATIBLE_DRIVER) return check(result, call);
  if (const auto problem = damaged_manifest()) fail(ErrorCode::system, "device", *problem);
  if (result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    fail(ErrorCode::out_of_memory, "device",
         fmt::format("expected a Vulkan driver, got {} from {}", name(result), call),
         "memory has run out, or a driver's manifest is damaged: VK_LOADER_DEBUG=all bin/devices names it");
  }
  fail(ErrorCode::system, "device",
       "expected a Vulkan driver, got a loader that finds none (VK_ERROR_INCOMPATIBLE_DRIVER)",
       "install a driver, on Debian or Ubuntu: apt install mesa-vulkan-drivers");
}

/// Whether the loader and its drivers, or one layer, have an extension.
bool has_extension(const GlobalTable& global, const char* layer, const char* wanted) {
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> found;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    check_loader(global.extensions(layer, &count, nullptr), "vkEnumerateInstanceExtensionProperties");
    found.resize(count);
    result = global.extensions(layer, &count, found.data());
  }
  check(result, "vkEnumerateInstanceExtensionProperties");
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(found[i].extensionName, wanted) == 0) return true;
  }
  return false;
}

bool has_layer(const GlobalTable& global, const char* wanted) {
  std::uint32_t count = 0;
  std::vector<VkLayerProperties> found;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    check(global.layers(&count, nullptr), "vkEnumerateInstanceLayerProperties");
    found.resize(count);
    result = global.layers(&count, found.data());
  }
  check(result, "vkEnumerateInstanceLayerProperties");
  for (std::uint32_t i = 0; i < count; ++i) {
    if (std::strcmp(found[i].layerName, wanted) == 0) return true;
  }
  return false;
}

void require_validation(const GlobalTable& global) {
  if (has_layer(global, validation_layer) &&
      has_extension(global, validation_layer, VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME)) {
    return;
  }
  fail(ErrorCode::system, "device",
       fmt::format("expected the layer {}, which HALFSTEP_VALIDATION=1 asks for, got none", validation_layer),
       "install it, on Debian or Ubuntu: apt install vulkan-validationlayers");
}

/// Stores messages from now until destroy_instance. (A messenger in VkInstanceCreateInfo::pNext receives only messages
/// about the creation and destruction of the instance.)
void listen(InstanceTable& table, PFN_vkGetInstanceProcAddr get_proc) {
  const auto create =
      reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(get_proc(table.instance, "vkCreateDebugUtilsMessengerEXT"));
  table.destroy_messenger = reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(
      get_proc(table.instance, "vkDestroyDebugUtilsMessengerEXT"));
  const VkDebugUtilsMessengerCreateInfoEXT info = validation_messenger_info();
  VkDebugUtilsMessengerEXT messenger = VK_NULL_HANDLE;
  check(create(table.instance, &info, nullptr, &messenger), "vkCreateDebugUtilsMessengerEXT");
  table.messenger = messenger;
}

VkInstance create(const GlobalTable& global, const VkInstanceCreateInfo& info) {
  VkInstance instance = VK_NULL_HANDLE;
  check_loader(global.create_instance(&info, nullptr, &instance), "vkCreateInstance");
  return instance;
}

}  // namespace

InstanceTable create_instance(bool validate) {
  const GlobalTable global = load_global();
  auto application = structure<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  application.pEngineName = "Halfstep";
  application.apiVersion = VK_API_VERSION_1_1;
  auto info = structure<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &application;

  std::vector<const char*> extensions;
  if (has_extension(global, nullptr, VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME)) {
    extensions.push_back(VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME);
    info.flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }
  const VkValidationFeatureEnableEXT enabled[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT};
  auto messenger = validation_messenger_info();
  auto features = structure<VkValidationFeaturesEXT>(VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT);
  if (validate) {
    require_validation(global);
    extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    features.enabledValidationFeatureCount = 1;
    features.pEnabledValidationFeatures = enabled;
    features.pNext = &messenger;
    info.pNext = &features;
    info.enabledLayerCount = 1;
    info.ppEnabledLayerNames = &validation_layer;
  }
  info.enabledExtensionCount = static_cast<std::uint32_t>(extensions.size());
  info.ppEnabledExtensionNames = extensions.data();
  InstanceTable table;
  table.instance = create(global, info);
  table.get_proc = global.get_proc;
  try {
    table = load_instance(table.instance, global.get_proc);
    if (validate) listen(table, global.get_proc);
  } catch (...) {
    destroy_instance(table);
    throw;
  }
  return table;
}

void destroy_instance(InstanceTable& instance) noexcept {
  if (instance.instance == VK_NULL_HANDLE) return;
  if (instance.messenger != VK_NULL_HANDLE) {
    instance.destroy_messenger(instance.instance, instance.messenger, nullptr);
  }
  const auto destroy =
      reinterpret_cast<PFN_vkDestroyInstance>(instance.get_proc(instance.instance, "vkDestroyInstance"));
  if (destroy != nullptr) destroy(instance.instance, nullptr);
  instance = {};
}

}  // namespace halfstep::vk
