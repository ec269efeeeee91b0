#include "vk/device/capabilities.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include "base/processor.h"
#include "vk/device/cooperative_matrix.h"
#include "vk/device/float_controls.h"
#include "vk/device/mixed_dots.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"
#include "vk/device/workarounds.h"
#include "vk/shader/shaders.h"

namespace halfstep::vk {
namespace {

using Extensions = std::set<std::string, std::less<>>;

/// A pNext chain for vkGetPhysicalDevice...2, built front to back.
class Chain {
 public:
  template <typename Struct>
  void add(Struct& next) {
    *tail_ = &next;
    tail_ = &next.pNext;
  }
  void* head() const { return head_; }

 private:
  void* head_ = nullptr;
  void** tail_ = &head_;
};

/// What shaders bind besides an operator's own, as uniform buffers: see Pipeline.
constexpr std::uint32_t storing_buffers = 3;

/// Without the list a device would seem to have no extensions, and other kernels would give other bits.
constexpr const char* extensions_query = "vkEnumerateDeviceExtensionProperties";

Extensions extensions_of(const InstanceTable& instance, VkPhysicalDevice device) {
  std::uint32_t count = 0;
  std::vector<VkExtensionProperties> found;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    check(instance.enumerate_device_extensions(device, nullptr, &count, nullptr), extensions_query);
    found.resize(count);
    result = instance.enumerate_device_extensions(device, nullptr, &count, found.data());
  }
  check(result, extensions_query);
  found.resize(count);
  Extensions names;
  for (const VkExtensionProperties& extension : found) names.emplace(extension.extensionName);
  return names;
}

void read_identity(Capabilities& c, const VkPhysicalDeviceProperties& properties) {
  c.name = properties.deviceName;
  c.type = properties.deviceType;
  c.vendor_id = properties.vendorID;
  c.device_id = properties.deviceID;
  c.api_version = properties.apiVersion;
  c.driver_version = properties.driverVersion;
  std::copy(std::begin(properties.pipelineCacheUUID), std::end(properties.pipelineCacheUUID),
            c.pipeline_cache_uuid.begin());
  c.limits = properties.limits;
}

void read_float_controls(Capabilities& c, const VkPhysicalDeviceFloatControlsPropertiesKHR& controls) {
  c.float_controls = true;
  c.denormals_independent = controls.denormBehaviorIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE_KHR;
  c.rounding_independent = controls.roundingModeIndependence != VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE_KHR;
  c.float16 = {controls.shaderDenormPreserveFloat16 == VK_TRUE, controls.shaderRoundingModeRTEFloat16 == VK_TRUE,
               controls.shaderSignedZeroInfNanPreserveFloat16 == VK_TRUE};
  c.float32 = {controls.shaderDenormPreserveFloat32 == VK_TRUE, controls.shaderRoundingModeRTEFloat32 == VK_TRUE,
               controls.shaderSignedZeroInfNanPreserveFloat32 == VK_TRUE};
}

void read_core_properties(Capabilities& c, const InstanceTable& instance, VkPhysicalDevice device,
                          const Extensions& extensions) {
  auto properties = structure<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  auto ids = structure<VkPhysicalDeviceIDProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES);
  auto subgroups = structure<VkPhysicalDeviceSubgroupProperties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
  auto sizes =
      structure<VkPhysicalDeviceMaintenance3Properties>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
  auto driver = structure<VkPhysicalDeviceDriverPropertiesKHR>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES_KHR);
  auto buffers = structure<VkPhysicalDeviceMaintenance4PropertiesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES_KHR);
  buffers.maxBufferSize = ~VkDeviceSize{0};
  Chain chain;
  chain.add(ids);
  chain.add(subgroups);
  chain.add(sizes);
  if (extensions.contains(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME)) chain.add(driver);
  if (extensions.contains(VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) chain.add(buffers);
  properties.pNext = chain.head();
  instance.properties(device, &properties);
  std::copy(std::begin(ids.deviceUUID), std::end(ids.deviceUUID), c.device_uuid.begin());
  std::copy(std::begin(ids.driverUUID), std::end(ids.driverUUID), c.driver_uuid.begin());
  if ((subgroups.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0) {
    c.subgroup_size = subgroups.subgroupSize;
    c.subgroup_operations = subgroups.supportedOperations;
  }
  c.max_buffer_bytes = std::min(sizes.maxMemoryAllocationSize, buffers.maxBufferSize);
  c.driver_id = driver.driverID;
  c.driver_name = driver.driverName;
  c.driver_info = driver.driverInfo;
}

void read_extension_properties(Capabilities& c, const InstanceTable& instance, VkPhysicalDevice device,
                               const Extensions& extensions) {
  auto properties = structure<VkPhysicalDeviceProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2);
  auto controls = structure<VkPhysicalDeviceFloatControlsPropertiesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES_KHR);
  auto sizes = structure<VkPhysicalDeviceSubgroupSizeControlPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT);
  auto nvidia = structure<VkPhysicalDeviceShaderSMBuiltinsPropertiesNV>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV);
  auto amd =
      structure<VkPhysicalDeviceShaderCorePropertiesAMD>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD);
  Chain chain;
  const bool has_controls = extensions.contains(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
  if (has_controls) chain.add(controls);
  if (extensions.contains(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) chain.add(sizes);
  if (extensions.contains(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME)) chain.add(nvidia);
  if (extensions.contains(VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME)) chain.add(amd);
  properties.pNext = chain.head();
  instance.properties(device, &properties);
  if (has_controls) read_float_controls(c, controls);
  c.min_subgroup_size = sizes.minSubgroupSize;
  c.max_subgroup_size = sizes.maxSubgroupSize;
  c.max_subgroups_per_group = sizes.maxComputeWorkgroupSubgroups;
  c.subgroup_size_control = (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  c.compute_units =
      nvidia.shaderSMCount + amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
}

void read_features(Capabilities& c, const InstanceTable& instance, VkPhysicalDevice device,
                   const Extensions& extensions) {
  auto features = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  auto storage =
      structure<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  auto arithmetic = structure<VkPhysicalDeviceShaderFloat16Int8FeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES_KHR);
  auto sizes = structure<VkPhysicalDeviceSubgroupSizeControlFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT);
  auto timeline = structure<VkPhysicalDeviceTimelineSemaphoreFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES_KHR);
  auto memory_model = structure<VkPhysicalDeviceVulkanMemoryModelFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES_KHR);
  CooperativeMatrixFeatures matrices;
  Bfloat16Features bfloat16;
  Float8Features float8;
  MixedDotFeatures dots;
  auto address = structure<VkPhysicalDeviceBufferDeviceAddressFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES_KHR);
  auto executables = structure<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  Chain chain;
  chain.add(storage);
  if (extensions.contains(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) chain.add(executables);
  if (extensions.contains(VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME)) chain.add(address);
  if (extensions.contains(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME)) chain.add(arithmetic);
  if (extensions.contains(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME)) chain.add(sizes);
  if (extensions.contains(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME)) chain.add(timeline);
  if (extensions.contains(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME)) chain.add(memory_model);
  if (extensions.contains(cooperative_matrix_extension)) chain.add(matrices);
  if (extensions.contains(bfloat16_extension)) chain.add(bfloat16);
  if (extensions.contains(float8_extension)) chain.add(float8);
  if (extensions.contains(mixed_dot_extension)) chain.add(dots);
  features.pNext = chain.head();
  instance.features(device, &features);
  c.storage_16bit = storage.storageBuffer16BitAccess == VK_TRUE;
  c.float16_arithmetic = arithmetic.shaderFloat16 == VK_TRUE;
  c.subgroup_size_control =
      c.subgroup_size_control && sizes.subgroupSizeControl == VK_TRUE && sizes.computeFullSubgroups == VK_TRUE;
  c.buffer_address = address.bufferDeviceAddress == VK_TRUE && features.features.shaderInt64 == VK_TRUE;
  c.timeline_semaphore = timeline.timelineSemaphore == VK_TRUE;
  c.cooperative_matrix = matrices.cooperativeMatrix == VK_TRUE && memory_model.vulkanMemoryModel == VK_TRUE &&
                         memory_model.vulkanMemoryModelDeviceScope == VK_TRUE && c.float16_arithmetic &&
                         cooperative_shaders_built();
  c.bfloat16_matrices = c.cooperative_matrix && bfloat16.shaderBFloat16Type == VK_TRUE &&
                        bfloat16.shaderBFloat16CooperativeMatrix == VK_TRUE;
  c.float8_matrices =
      c.cooperative_matrix && float8.shaderFloat8 == VK_TRUE && float8.shaderFloat8CooperativeMatrix == VK_TRUE;
  c.mixed_dots = dots.shaderMixedFloatDotProductFloat16AccFloat32 == VK_TRUE && c.float16_arithmetic;
  c.pipeline_executables = executables.pipelineExecutableInfo == VK_TRUE;
  c.memory_budget = extensions.contains(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  for (const char* priority : {VK_EXT_GLOBAL_PRIORITY_EXTENSION_NAME, "VK_KHR_global_priority"}) {
    if (extensions.contains(priority)) c.global_priority = priority;
  }
  c.portability_subset = extensions.contains("VK_KHR_portability_subset");
}

std::vector<VkQueueFamilyProperties> queue_families(const InstanceTable& instance, VkPhysicalDevice device) {
  std::uint32_t count = 0;
  instance.queue_families(device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  instance.queue_families(device, &count, families.data());
  return families;
}

/// Prefers a family without graphics, so that a long step does not block the display.
void read_queues(Capabilities& c, const InstanceTable& instance, VkPhysicalDevice device) {
  const std::vector<VkQueueFamilyProperties> families = queue_families(instance, device);
  for (const bool graphics : {false, true}) {
    for (std::uint32_t i = 0; i < families.size() && !c.queue_family; ++i) {
      const VkQueueFlags flags = families[i].queueFlags;
      const bool fits = (flags & VK_QUEUE_COMPUTE_BIT) != 0 && ((flags & VK_QUEUE_GRAPHICS_BIT) != 0) == graphics;
      if (!fits || families[i].queueCount == 0) continue;
      c.queue_family = i;
      c.timestamp_bits = families[i].timestampValidBits;
    }
  }
}

/// The number of units that run workgroups in parallel.
std::uint32_t compute_units(const Capabilities& c) {
  if (c.type == VK_PHYSICAL_DEVICE_TYPE_CPU) return std::max(1u, std::thread::hardware_concurrency());
  const std::uint32_t assumed = c.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ? 16 : 64;
  return c.compute_units != 0 ? c.compute_units : assumed;
}

/// The number of workgroups that keep the device busy: a few per unit that runs them.
std::uint32_t wanted_groups(const Capabilities& c) {
  if (c.type == VK_PHYSICAL_DEVICE_TYPE_CPU) return std::max(4u, 2 * compute_units(c));
  return 4 * compute_units(c);
}

}  // namespace

Capabilities query(const InstanceTable& instance, VkPhysicalDevice device) {
  Capabilities c;
  VkPhysicalDeviceProperties properties;
  instance.properties_1_0(device, &properties);
  read_identity(c, properties);
  instance.memory_properties(device, &c.memory);
  if (c.api_version < VK_API_VERSION_1_1) {
    c.unusable.emplace_back(fmt::format("its driver has Vulkan {}, and 1.1 is needed", version_text(c.api_version)));
    return c;
  }
  const Extensions extensions = extensions_of(instance, device);
  read_core_properties(c, instance, device, extensions);
  read_extension_properties(c, instance, device, extensions);
  read_features(c, instance, device, extensions);
  read_queues(c, instance, device);
  if (!c.queue_family) c.unusable.emplace_back("it has no queue for compute");
  apply_workarounds(c);
  return c;
}

std::uint32_t timestamp_bits(const InstanceTable& instance, VkPhysicalDevice device, std::uint32_t family) {
  const std::vector<VkQueueFamilyProperties> families = queue_families(instance, device);
  if (family >= families.size()) {
    fail("device", fmt::format("expected a queue family below {}, got {}", families.size(), family));
  }
  if ((families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) {
    fail("device", fmt::format("expected a queue family with compute, got {}, which has none", family));
  }
  return families[family].timestampValidBits;
}

std::uint64_t memory_bytes(const Capabilities& capabilities) {
  const VkPhysicalDeviceMemoryProperties& memory = capabilities.memory;
  std::uint64_t bytes = 0;
  for (std::uint32_t i = 0; i < memory.memoryHeapCount; ++i) {
    if ((memory.memoryHeaps[i].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0) bytes += memory.memoryHeaps[i].size;
  }
  return bytes;
}

bool shares_memory(const Capabilities& capabilities) {
  return capabilities.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
         capabilities.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

bool is_usable(const Capabilities& capabilities, std::uint32_t heap) {
  const bool own = (capabilities.memory.memoryHeaps[heap].flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) != 0;
  return own || shares_memory(capabilities);
}

std::string version_text(std::uint32_t version) {
  return fmt::format("{}.{}.{}", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                     VK_API_VERSION_PATCH(version));
}

std::string_view type_name(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return "discrete";
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return "integrated";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return "virtual";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return "cpu";
    default:
      return "other";
  }
}

plan::Target target(const Capabilities& c, const Settings& settings) {
  const VkPhysicalDeviceLimits& limits = c.limits;
  plan::Target target;
  const bool native = c.storage_16bit && settings.tier != "packed";
  target.cpu = c.type == VK_PHYSICAL_DEVICE_TYPE_CPU;
  target.float16.storage = native ? plan::Storage16::native : plan::Storage16::packed;
  target.float16.words = target.cpu && settings.tier != "native";
  target.float16.arithmetic = native && c.float16_arithmetic && !target.cpu;
  target.float16.rounding_is_promised = !target.cpu && promises_rounding(c);
  target.float16.rounded_by_driver = rounds_to_half_well(c);
  target.float16.dots = native && c.mixed_dots && !target.cpu && has_shader("gemm_dots");
  target.subgroups.size = c.subgroup_size_control || subgroup_size_is_fixed(c) ? c.subgroup_size : 0;
  target.subgroups.shuffle = (c.subgroup_operations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) != 0;
  target.subgroups.broadcast = (c.subgroup_operations & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0;
  target.max_invocations = std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
  std::copy(std::begin(limits.maxComputeWorkGroupCount), std::end(limits.maxComputeWorkGroupCount),
            target.max_groups.begin());
  target.shared_memory_bytes = limits.maxComputeSharedMemorySize;
  target.max_push_bytes = limits.maxPushConstantsSize;
  target.max_storage_range = limits.maxStorageBufferRange;
  target.part_bytes = std::bit_floor(c.max_buffer_bytes);
  target.max_rounds = c.max_loop_rounds;
  // A quad of f32 is 16 bytes, even if the device allows a smaller alignment.
  target.offset_alignment =
      static_cast<std::uint32_t>(std::max<VkDeviceSize>(limits.minStorageBufferOffsetAlignment, 16));
  if (reads_texels_faster(c)) {
    target.max_texels = limits.maxTexelBufferElements;
    // Of f32, in one part of an arena.
    target.max_texels = static_cast<std::uint32_t>(std::min<std::uint64_t>(target.max_texels, target.part_bytes / 16));
    target.offset_alignment =
        std::max(target.offset_alignment, static_cast<std::uint32_t>(limits.minTexelBufferOffsetAlignment));
  }
  target.uniform_loads = c.buffer_address && loads_uniforms_once(c) &&
                         (c.subgroup_operations & VK_SUBGROUP_FEATURE_QUAD_BIT) != 0 && has_shader("gemm_uniform") &&
                         has_shader("gemm_outer");
  target.vector_registers = process::vector_registers();
  target.winograd = has_shader("winograd");
  target.max_storage_buffers =
      std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers,
                limits.maxPerStageResources - storing_buffers});
  target.submit_seconds = settings.submit_milliseconds / 1000;
  target.wanted_groups = wanted_groups(c);
  target.compute_units = compute_units(c);
  target.matrix_shapes = c.matrix_shapes;
  target.matrices_along_k = reads_matrices_along_k(c);
  target.gemm_kernels = settings.gemm;
  if (!has_shader("mlp_forward")) target.mlp_kernel = "layers";
  target.fusion = settings.fusion;
  return target;
}

std::string tier(const plan::Target& target) {
  if (target.float16.storage == plan::Storage16::packed) return "packed f16";
  return target.float16.arithmetic ? "native 16-bit storage, f16 arithmetic" : "native 16-bit storage";
}

}  // namespace halfstep::vk
