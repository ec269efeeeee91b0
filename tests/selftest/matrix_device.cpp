#include "selftest/matrix_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "harness/device.h"
#include "vk/device/cooperative_matrix.h"
#include "vk/device/instance.h"
#include "vk/device/result.h"
#include "vk/device/settings.h"
#include "vk/device/structure.h"

namespace halfstep::selftest {
namespace {

std::set<std::string> extensions_of(const vk::InstanceTable& instance, VkPhysicalDevice device) {
  std::uint32_t count = 0;
  instance.enumerate_device_extensions(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> all(count);
  vk::check(instance.enumerate_device_extensions(device, nullptr, &count, all.data()),
            "vkEnumerateDeviceExtensionProperties");
  std::set<std::string> names;
  for (const VkExtensionProperties& one : all) names.insert(one.extensionName);
  return names;
}

}  // namespace

/// What is asked for, and then enabled where the device has it.
struct MatrixDevice::Features {
  vk::CooperativeMatrixFeatures matrices;
  VkPhysicalDeviceVulkanMemoryModelFeaturesKHR memory_model =
      vk::structure<VkPhysicalDeviceVulkanMemoryModelFeaturesKHR>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES_KHR);
  VkPhysicalDevice16BitStorageFeatures halves =
      vk::structure<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  VkPhysicalDevice8BitStorageFeaturesKHR bytes = vk::structure<VkPhysicalDevice8BitStorageFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES_KHR);
  VkPhysicalDeviceShaderFloat16Int8FeaturesKHR arithmetic = vk::structure<VkPhysicalDeviceShaderFloat16Int8FeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES_KHR);
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroups =
      vk::structure<VkPhysicalDeviceSubgroupSizeControlFeaturesEXT>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT);
  vk::Bfloat16Features bfloat16;
  vk::Float8Features float8;
  VkPhysicalDeviceFeatures2 core =
      vk::structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  std::vector<const char*> extensions;

  void ask(const vk::InstanceTable& instance, VkPhysicalDevice device) {
    const std::set<std::string> has = extensions_of(instance, device);
    core.pNext = &halves;
    const auto add = [&](const char* extension, auto& features) {
      if (!has.contains(extension)) return;
      extensions.push_back(extension);
      features.pNext = core.pNext;
      core.pNext = &features;
    };
    add(vk::cooperative_matrix_extension, matrices);
    add(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME, memory_model);
    add(VK_KHR_8BIT_STORAGE_EXTENSION_NAME, bytes);
    add(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME, arithmetic);
    add(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME, subgroups);
    add(vk::bfloat16_extension, bfloat16);
    add(vk::float8_extension, float8);
    instance.features(device, &core);
    const VkBool32 int16 = core.features.shaderInt16;
    core.features = {};
    core.features.shaderInt16 = int16;
    matrices.cooperativeMatrixRobustBufferAccess = VK_FALSE;  // would need robust buffers
  }
};

MatrixDevice::MatrixDevice()
    : instance_(vk::create_instance(vk::settings({}).validation)), features_(std::make_unique<Features>()) {
  std::vector<VkPhysicalDevice> devices(Device::list().size());
  auto count = static_cast<std::uint32_t>(devices.size());
  vk::check(instance_.enumerate_physical_devices(instance_.instance, &count, devices.data()),
            "vkEnumeratePhysicalDevices");
  physical_ = devices.at(testing::device().info().index);
  features_->ask(instance_, physical_);
  if (features_->matrices.cooperativeMatrix != VK_TRUE) {
    missing_ = "the device has no matrix units (VK_KHR_cooperative_matrix)";
  } else if (features_->memory_model.vulkanMemoryModel != VK_TRUE) {
    missing_ = "the device lacks the memory model that matrix units need (vulkanMemoryModel)";
  } else {
    find_products();
    open(*features_);
  }
}

MatrixDevice::~MatrixDevice() {
  pipelines_.reset();
  device_.reset();
  vk::destroy_device(instance_, handle_);
  vk::destroy_instance(instance_);
}

void MatrixDevice::find_products() {
  const auto query = reinterpret_cast<vk::MatrixQuery>(
      instance_.get_proc(instance_.instance, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  std::uint32_t count = 0;
  if (query == nullptr || query(physical_, &count, nullptr) != VK_SUCCESS) return;
  std::vector<vk::CooperativeMatrixProperties> found(count);
  vk::check(query(physical_, &count, found.data()), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
  found.resize(count);
  for (const vk::CooperativeMatrixProperties& p : found) {
    const MatrixProduct product{p.MSize,
                                p.NSize,
                                p.KSize,
                                Component{p.AType},
                                Component{p.BType},
                                Component{p.CType},
                                Component{p.ResultType},
                                p.saturatingAccumulation == VK_TRUE,
                                p.scope};
    if (std::ranges::find(products_, product) == products_.end()) products_.push_back(product);
  }
}

void MatrixDevice::open(const Features& wanted) {
  const std::uint32_t family = vk::query(instance_, physical_).queue_family.value();
  const float priority = 1;
  auto queue = vk::structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = vk::structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = &wanted.core;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(wanted.extensions.size());
  info.ppEnabledExtensionNames = wanted.extensions.data();
  vk::check(instance_.create_device(physical_, &info, nullptr, &handle_), "vkCreateDevice");
  VkQueue made = VK_NULL_HANDLE;
  vk::load_device(instance_, handle_).vkGetDeviceQueue(handle_, family, 0, &made);
  AdoptedDevice handles;
  handles.instance = instance_.instance;
  handles.physical_device = physical_;
  handles.device = handle_;
  handles.queue = made;
  handles.queue_family = family;
  handles.storage_buffer_16bit_access = wanted.halves.storageBuffer16BitAccess == VK_TRUE;
  handles.shader_float16 = wanted.arithmetic.shaderFloat16 == VK_TRUE;
  handles.subgroup_size_control =
      wanted.subgroups.subgroupSizeControl == VK_TRUE && wanted.subgroups.computeFullSubgroups == VK_TRUE;
  device_ = std::make_unique<Device>(Device::adopt(handles, {.limits = "", .cache_folder = ""}));
  pipelines_ = std::make_unique<vk::Pipelines>(context());
}

std::string MatrixDevice::lacks(const MatrixProduct& product) const {
  const Features& f = *features_;
  for (const Component component : {product.a, product.b, product.c, product.result}) {
    if (!is_tested(component)) return name(component) + " has no kernels in the self-test";
    if (component == Component::f16 && f.arithmetic.shaderFloat16 != VK_TRUE) return "no shaderFloat16";
    if (component == Component::bf16 && f.bfloat16.shaderBFloat16CooperativeMatrix != VK_TRUE)
      return "no shaderBFloat16CooperativeMatrix";
    if (is_float8(component) && f.float8.shaderFloat8CooperativeMatrix != VK_TRUE)
      return "no shaderFloat8CooperativeMatrix";
    if (bytes(component) == 1 && f.arithmetic.shaderInt8 != VK_TRUE) return "no shaderInt8";
    if (bytes(component) == 1 && f.bytes.storageBuffer8BitAccess != VK_TRUE) return "no storageBuffer8BitAccess";
    if (bytes(component) == 2 && f.halves.storageBuffer16BitAccess != VK_TRUE) return "no storageBuffer16BitAccess";
    if (bytes(component) == 2 && is_integer(component) && f.core.features.shaderInt16 != VK_TRUE)
      return "no shaderInt16";
  }
  return product.scope == 3 ? "" : "matrices of another scope than a subgroup have no kernels in the self-test";
}

}  // namespace halfstep::selftest
