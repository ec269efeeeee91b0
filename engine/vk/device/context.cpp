#include "vk/device/context.h"

#include <halfstep/error.h>
#include <halfstep/process.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "vk/device/cooperative_matrix.h"
#include "vk/device/instance.h"
#include "vk/device/limits.h"
#include "vk/device/mixed_dots.h"
#include "vk/device/notes.h"
#include "vk/device/promised.h"
#include "vk/device/queue_priority.h"
#include "vk/device/result.h"
#include "vk/device/selection.h"
#include "vk/device/structure.h"
#include "vk/device/validation.h"
#include "vk/shader/pipeline_pool.h"

namespace halfstep::vk {
namespace {

std::vector<VkPhysicalDevice> physical_devices(const InstanceTable& instance) {
  std::uint32_t count = 0;
  std::vector<VkPhysicalDevice> devices;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    check(instance.enumerate_physical_devices(instance.instance, &count, nullptr), "vkEnumeratePhysicalDevices");
    devices.resize(count);
    result = instance.enumerate_physical_devices(instance.instance, &count, devices.data());
  }
  check(result, "vkEnumeratePhysicalDevices");
  devices.resize(count);
  return devices;
}

/// Runs in a child: queries the matrix shapes of the device with this index.
std::string ask_for_matrix_shapes(std::string_view index) {
  const InstanceTable instance = create_instance(false);
  const std::vector<VkPhysicalDevice> devices = physical_devices(instance);
  return text(matrix_shapes(instance, devices.at(std::stoul(std::string(index)))));
}

/// Whether to use a device's matrix units. A CPU emulates them, several times slower than plain code, so there they are
/// used only on request.
bool wants_matrices(const Capabilities& c, const Settings& settings) {
  const bool told = settings.gemm.starts_with("cooperative");
  return c.cooperative_matrix && (told || c.type != VK_PHYSICAL_DEVICE_TYPE_CPU);
}

std::string driver_text(const Capabilities& c) {
  if (c.driver_name.empty()) return version_text(c.driver_version);
  return c.driver_info.empty() ? c.driver_name : fmt::format("{} {}", c.driver_name, c.driver_info);
}

DeviceInfo info_of(const Capabilities& capabilities, const Settings& settings, std::uint32_t index) {
  DeviceInfo info;
  info.index = index;
  info.name = capabilities.name;
  info.type = type_name(capabilities.type);
  info.driver = driver_text(capabilities);
  info.api_version = version_text(capabilities.api_version);
  info.memory_bytes = memory_bytes(capabilities);
  info.tier = tier(target(capabilities, settings));
  info.usable = capabilities.unusable.empty();
  info.reason = fmt::format("{}", fmt::join(capabilities.unusable, "; "));
  return info;
}

std::vector<DeviceInfo> infos_of(const InstanceTable& instance, const std::vector<VkPhysicalDevice>& devices,
                                 const Settings& settings) {
  std::vector<DeviceInfo> infos;
  for (VkPhysicalDevice device : devices) {
    infos.push_back(info_of(query(instance, device), settings, static_cast<std::uint32_t>(infos.size())));
  }
  return infos;
}

/// Every optional feature that the device has, in the structures that VkDeviceCreateInfo needs.
class DeviceFeatures {
 public:
  explicit DeviceFeatures(const Capabilities& c) {
    storage_.storageBuffer16BitAccess = c.storage_16bit ? VK_TRUE : VK_FALSE;
    append(storage_);
    if (c.float16_arithmetic) {
      extensions_.push_back(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
      arithmetic_.shaderFloat16 = VK_TRUE;
      append(arithmetic_);
    }
    if (c.subgroup_size_control) {
      extensions_.push_back(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
      subgroups_.subgroupSizeControl = VK_TRUE;
      subgroups_.computeFullSubgroups = VK_TRUE;
      append(subgroups_);
    }
    if (c.cooperative_matrix) {
      extensions_.push_back(cooperative_matrix_extension);
      extensions_.push_back(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
      matrices_.cooperativeMatrix = VK_TRUE;
      memory_model_.vulkanMemoryModel = VK_TRUE;
      memory_model_.vulkanMemoryModelDeviceScope = VK_TRUE;  // which atomics of buffers have
      append(matrices_);
      append(memory_model_);
    }
    if (c.bfloat16_matrices) {
      extensions_.push_back(bfloat16_extension);
      bfloat16_.shaderBFloat16Type = VK_TRUE;
      bfloat16_.shaderBFloat16CooperativeMatrix = VK_TRUE;
      append(bfloat16_);
    }
    if (c.float8_matrices) {
      extensions_.push_back(float8_extension);
      float8_.shaderFloat8 = VK_TRUE;
      float8_.shaderFloat8CooperativeMatrix = VK_TRUE;
      append(float8_);
    }
    if (c.mixed_dots) {
      extensions_.push_back(mixed_dot_extension);
      dots_.shaderMixedFloatDotProductFloat16AccFloat32 = VK_TRUE;
      append(dots_);
    }
    if (c.buffer_address) {
      extensions_.push_back(VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME);
      address_.bufferDeviceAddress = VK_TRUE;
      core_.features.shaderInt64 = VK_TRUE;  // addresses are 64-bit
      append(address_);
      append(core_);
    }
    if (c.pipeline_executables) {
      extensions_.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
      executables_.pipelineExecutableInfo = VK_TRUE;
      append(executables_);
    }
    if (c.float_controls) extensions_.push_back(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
    if (c.portability_subset) extensions_.push_back("VK_KHR_portability_subset");
  }
  DeviceFeatures(const DeviceFeatures&) = delete;
  DeviceFeatures& operator=(const DeviceFeatures&) = delete;

  const void* chain() const { return head_; }
  const std::vector<const char*>& extensions() const { return extensions_; }

 private:
  template <typename Struct>
  void append(Struct& feature) {
    feature.pNext = head_;
    head_ = &feature;
  }

  VkPhysicalDevice16BitStorageFeatures storage_ =
      structure<VkPhysicalDevice16BitStorageFeatures>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
  VkPhysicalDeviceShaderFloat16Int8FeaturesKHR arithmetic_ = structure<VkPhysicalDeviceShaderFloat16Int8FeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES_KHR);
  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT subgroups_ = structure<VkPhysicalDeviceSubgroupSizeControlFeaturesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT);
  VkPhysicalDeviceVulkanMemoryModelFeaturesKHR memory_model_ = structure<VkPhysicalDeviceVulkanMemoryModelFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES_KHR);
  VkPhysicalDeviceFeatures2 core_ = structure<VkPhysicalDeviceFeatures2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2);
  CooperativeMatrixFeatures matrices_;
  Bfloat16Features bfloat16_;
  Float8Features float8_;
  MixedDotFeatures dots_;
  VkPhysicalDeviceBufferDeviceAddressFeaturesKHR address_ = structure<VkPhysicalDeviceBufferDeviceAddressFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES_KHR);
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables_ =
      structure<VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR>(
          VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR);
  void* head_ = nullptr;
  std::vector<const char*> extensions_;
};

void require_handles(const AdoptedDevice& handles) {
  const std::pair<const void*, std::string_view> required[] = {{handles.instance, "instance"},
                                                               {handles.physical_device, "physical_device"},
                                                               {handles.device, "device"},
                                                               {handles.queue, "queue"}};
  for (const auto& [handle, field] : required) {
    if (handle == nullptr) fail("device", fmt::format("expected the application's {}, got null", field));
  }
  if (static_cast<bool>(handles.lock_queue) != static_cast<bool>(handles.unlock_queue)) {
    fail("device", "expected both of lock_queue and unlock_queue or neither, got one");
  }
}

/// Of those that a process with these settings may have, the one; else null. Comes before all that loads a driver.
std::shared_ptr<process::Child> child_of(const DeviceSettings& settings) {
  const bool may = settings.may_fork && !process::Child::inside() && cooperative_shaders_built();
  return may ? child_without_drivers() : nullptr;
}

/// Ends the process's child where no device has what it is for: it would be one more process of the program's name.
void end_useless_child(const InstanceTable& instance, std::span<const VkPhysicalDevice> devices,
                       const Settings& settings) {
  const auto wants = [&](VkPhysicalDevice device) { return wants_matrices(query(instance, device), settings); };
  if (!process::Child::inside() && std::ranges::none_of(devices, wants)) end_child_without_drivers();
}

}  // namespace

std::shared_ptr<Context> Context::open(std::string_view selector, const DeviceSettings& settings) {
  const std::string wanted = selector.empty() ? environment("HALFSTEP_DEVICE").value_or("") : std::string(selector);
  std::shared_ptr<Context> context(new Context(settings));
  std::shared_ptr<process::Child> child = child_of(settings);
  context->instance_ = create_instance(context->settings_.validation);
  const std::vector<VkPhysicalDevice> devices = physical_devices(context->instance_);
  end_useless_child(context->instance_, devices, context->settings_);
  const std::size_t chosen = select_device(infos_of(context->instance_, devices, context->settings_), wanted);
  context->capabilities_ = query(context->instance_, devices[chosen]);
  lower_limits(context->capabilities_, context->settings_.limits);
  if (process::Child::inside()) {
    context->take_matrix_shapes(matrix_shapes(context->instance_, devices[chosen]));
  } else {
    context->find_matrix_shapes(std::move(child), chosen);
  }
  context->describe(static_cast<std::uint32_t>(chosen));
  context->open_device(devices[chosen]);
  return context;
}

std::vector<DeviceInfo> Context::list(const DeviceSettings& settings) {
  Context context(settings);
  child_of(settings);
  context.instance_ = create_instance(context.settings_.validation);
  const std::vector<VkPhysicalDevice> devices = physical_devices(context.instance_);
  end_useless_child(context.instance_, devices, context.settings_);
  return infos_of(context.instance_, devices, context.settings_);
}

std::shared_ptr<Context> Context::adopt(const AdoptedDevice& handles, const DeviceSettings& settings) {
  require_handles(handles);
  std::shared_ptr<Context> context(new Context(settings));
  context->owned_ = false;
  const auto get_proc = reinterpret_cast<PFN_vkGetInstanceProcAddr>(handles.get_instance_proc_addr);
  context->instance_ =
      load_instance(static_cast<VkInstance>(handles.instance), get_proc != nullptr ? get_proc : load_global().get_proc);
  const auto physical_device = static_cast<VkPhysicalDevice>(handles.physical_device);
  context->capabilities_ = query(context->instance_, physical_device);
  keep_promised(context->capabilities_, handles);
  lower_limits(context->capabilities_, context->settings_.limits);
  context->describe(0);
  if (!context->info_.usable) {
    fail(ErrorCode::unsupported, "device",
         fmt::format("expected a usable device, got {}, but {}", context->info_.name, context->info_.reason));
  }
  context->use_queue_of(handles);
  return context;
}

void Context::take_matrix_shapes(std::vector<plan::MatrixShape> shapes) {
  const auto unusable = [&](const plan::MatrixShape& shape) {
    return (shape.type == plan::MatrixType::bfloat16 && !capabilities_.bfloat16_matrices) ||
           (shape.type == plan::MatrixType::float8 && !capabilities_.float8_matrices);
  };
  std::erase_if(shapes, unusable);
  capabilities_.matrix_shapes = std::move(shapes);
}

/// Queries in a child, once per driver build. A query that crashed is not repeated; one that failed otherwise is.
void Context::find_matrix_shapes(std::shared_ptr<process::Child> child, std::size_t index) {
  if (!wants_matrices(capabilities_, settings_)) return;
  Notes notes(capabilities_, settings_.cache_folder);
  std::optional<std::string> shapes = notes.find("matrices");
  if (!shapes && child && child->alive()) {
    const process::Child::Outcome outcome = child->run(ask_for_matrix_shapes, std::to_string(index), child_limit);
    if (outcome.answer || outcome.crashed) notes.add("matrices", outcome.answer.value_or(""));
    notes.save();
    shapes = outcome.answer;
  }
  take_matrix_shapes(matrix_shapes_from(shapes.value_or("")));
  if (!capabilities_.matrix_shapes.empty()) child_ = std::move(child);
}

void Context::use_queue_of(const AdoptedDevice& handles) {
  capabilities_.queue_family = handles.queue_family;
  capabilities_.timestamp_bits =
      timestamp_bits(instance_, static_cast<VkPhysicalDevice>(handles.physical_device), handles.queue_family);
  physical_device_ = static_cast<VkPhysicalDevice>(handles.physical_device);
  device_ = static_cast<VkDevice>(handles.device);
  queue_ = static_cast<VkQueue>(handles.queue);
  table_ = load_device(instance_, device_);
  if (handles.debug_utils) load_debug_utils(table_, instance_);
  if (capabilities_.buffer_address && table_.vkGetBufferDeviceAddressKHR == nullptr) {
    fail("device", "expected a device with VK_KHR_buffer_device_address, as the application says, got one without");
  }
  allocator_ = static_cast<const VkAllocationCallbacks*>(handles.allocator);
  timeline_semaphores_ = handles.timeline_semaphore;
  lock_ = handles.lock_queue;
  unlock_ = handles.unlock_queue;
}

void Context::describe(std::uint32_t index) {
  target_ = vk::target(capabilities_, settings_);
  info_ = info_of(capabilities_, settings_, index);
}

void Context::open_device(VkPhysicalDevice physical_device) {
  const float priority = 1;
  auto queue = structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = queue_family();
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  const DeviceFeatures features(capabilities_);
  auto info = structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.pNext = features.chain();
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(features.extensions().size());
  info.ppEnabledExtensionNames = features.extensions().data();
  if (settings_.low_priority) {
    info_.queue_priority = create_low_priority_device(instance_, physical_device, capabilities_, info, device_);
  } else {
    VkDevice device = VK_NULL_HANDLE;
    check(instance_.create_device(physical_device, &info, nullptr, &device), "vkCreateDevice");
    device_ = device;
  }
  physical_device_ = physical_device;
  table_ = load_device(instance_, device_);
  if (settings_.validation) load_debug_utils(table_, instance_);
  table_.vkGetDeviceQueue(device_, queue_family(), 0, &queue_);
}

Context::Context(const DeviceSettings& settings) : settings_(vk::settings(settings)) {}

Context::~Context() {
  pipeline_pool_.reset();
  if (!owned_) return;
  destroy_device(instance_, device_);
  destroy_instance(instance_);
}

PipelinePool& Context::pipeline_pool() {
  const std::scoped_lock lock(pool_mutex_);
  if (!pipeline_pool_) pipeline_pool_ = std::make_unique<PipelinePool>(*this);
  return *pipeline_pool_;
}

Context::HeapBytes Context::heap_bytes() const {
  auto budget = structure<VkPhysicalDeviceMemoryBudgetPropertiesEXT>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
  auto memory = structure<VkPhysicalDeviceMemoryProperties2>(VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2);
  if (capabilities_.memory_budget) {
    memory.pNext = &budget;
    instance_.memory_properties2(physical_device_, &memory);
  }
  HeapBytes bytes;
  for (std::uint32_t i = 0; i < capabilities_.memory.memoryHeapCount; ++i) {
    if (!is_usable(capabilities_, i)) continue;
    const std::uint64_t size = capabilities_.memory.memoryHeaps[i].size;
    const std::uint64_t left = budget.heapBudget[i] - std::min(budget.heapBudget[i], budget.heapUsage[i]);
    bytes.all += size;
    bytes.free += capabilities_.memory_budget ? std::min(size, left) : size;
  }
  return bytes;
}

void Context::submit(std::span<const VkSubmitInfo> batches, VkFence fence) {
  // The application's lock first: it may be held by the caller, and who waits for it must hold nothing.
  if (lock_) lock_();
  VkResult result;
  {
    const std::lock_guard lock(queue_mutex_);
    result = table_.vkQueueSubmit(queue_, static_cast<std::uint32_t>(batches.size()), batches.data(), fence);
  }
  if (unlock_) unlock_();
  check(result, "vkQueueSubmit");
}

}  // namespace halfstep::vk
