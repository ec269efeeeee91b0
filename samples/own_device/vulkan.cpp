#include "samples/own_device/vulkan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace samples::own_device {

using halfstep::ErrorCode;
using halfstep::fail;

void check(VkResult result, const char* what) {
  if (result == VK_SUCCESS) return;
  fail(ErrorCode::system, "vulkan",
       fmt::format("expected {} to succeed, got VkResult {}", what, static_cast<int>(result)));
}

Machine::Machine(const std::string& wanted) {
  create_instance();
  try {
    find(wanted);
    create_device();
  } catch (...) {
    destroy();
    throw;
  }
}

Machine::~Machine() {
  destroy();
}

void Machine::destroy() noexcept {
  vkDestroyDevice(device, nullptr);
  vkDestroyInstance(instance, nullptr);
}

void Machine::create_instance() {
  const char* const validation = std::getenv("HALFSTEP_VALIDATION");
  const char* const layer = "VK_LAYER_KHRONOS_validation";
  auto about = of_type<VkApplicationInfo>(VK_STRUCTURE_TYPE_APPLICATION_INFO);
  about.apiVersion = VK_API_VERSION_1_1;
  auto info = of_type<VkInstanceCreateInfo>(VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO);
  info.pApplicationInfo = &about;
  info.enabledLayerCount = validation != nullptr && std::strcmp(validation, "1") == 0 ? 1 : 0;
  info.ppEnabledLayerNames = &layer;
  check(vkCreateInstance(&info, nullptr, &instance), "vkCreateInstance");
}

/// Finds the device, and its first queue family with compute.
void Machine::find(const std::string& wanted) {
  std::uint32_t count = 0;
  check(vkEnumeratePhysicalDevices(instance, &count, nullptr), "vkEnumeratePhysicalDevices");
  std::vector<VkPhysicalDevice> devices(count);
  check(vkEnumeratePhysicalDevices(instance, &count, devices.data()), "vkEnumeratePhysicalDevices");
  const auto found = std::ranges::find_if(devices, [&](VkPhysicalDevice each) {
    VkPhysicalDeviceProperties properties;
    vkGetPhysicalDeviceProperties(each, &properties);
    return std::string_view(properties.deviceName).find(wanted) != std::string_view::npos;
  });
  if (found == devices.end()) fail("vulkan", fmt::format("expected a device named '{}', got {} others", wanted, count));
  physical = *found;
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical, &count, families.data());
  while (family < count && (families[family].queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family;
  if (family == count) fail(ErrorCode::unsupported, "vulkan", "expected a queue for compute, got none");
}

void Machine::create_device() {
  const float priority = 1;
  auto queues = of_type<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queues.queueFamilyIndex = family;
  queues.queueCount = 1;
  queues.pQueuePriorities = &priority;
  auto info = of_type<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queues;
  check(vkCreateDevice(physical, &info, nullptr, &device), "vkCreateDevice");
  vkGetDeviceQueue(device, family, 0, &queue);
}

halfstep::AdoptedDevice Machine::handles() const {
  halfstep::AdoptedDevice handles;
  handles.instance = instance;
  handles.physical_device = physical;
  handles.device = device;
  handles.queue = queue;
  handles.queue_family = family;
  handles.get_instance_proc_addr = reinterpret_cast<void (*)()>(&vkGetInstanceProcAddr);
  return handles;  // nothing optional was enabled
}

Buffer::Buffer(const Machine& machine, std::uint64_t bytes, VkMemoryPropertyFlags properties)
    : device_(machine.device) {
  auto info = of_type<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  check(vkCreateBuffer(device_, &info, nullptr, &handle_), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device_, handle_, &needs);
  VkPhysicalDeviceMemoryProperties types;
  vkGetPhysicalDeviceMemoryProperties(machine.physical, &types);
  const auto suits = [&](std::uint32_t type) {
    return (needs.memoryTypeBits >> type & 1) != 0 &&
           (types.memoryTypes[type].propertyFlags & properties) == properties;
  };
  auto allocation = of_type<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocation.allocationSize = needs.size;
  // Vulkan has such a type for memory of the device's, and for memory that the host sees and that is coherent.
  while (!suits(allocation.memoryTypeIndex)) ++allocation.memoryTypeIndex;
  check(vkAllocateMemory(device_, &allocation, nullptr, &memory_), "vkAllocateMemory");
  check(vkBindBufferMemory(device_, handle_, memory_, 0), "vkBindBufferMemory");
  if ((properties & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) == 0) return;
  check(vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped_), "vkMapMemory");
}

Buffer::~Buffer() {
  vkDestroyBuffer(device_, handle_, nullptr);
  vkFreeMemory(device_, memory_, nullptr);
}

halfstep::DeviceBuffer Buffer::tensor(std::uint64_t first, std::uint64_t count) const {
  halfstep::DeviceBuffer memory;
  memory.buffer = (std::uint64_t)handle_;  // NOLINT: a pointer or a number
  memory.offset = 4 * first;
  memory.bytes = 4 * count;
  memory.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  return memory;
}

Kernel::Kernel(const Machine& machine, const std::vector<std::uint32_t>& spirv, const Buffer& numbers,
               const Buffer& picture)
    : device_(machine.device) {
  create_layout();
  bind({numbers.handle(), picture.handle()});
  create_pipeline(spirv);
}

Kernel::~Kernel() {
  vkDestroyPipeline(device_, pipeline_, nullptr);
  vkDestroyDescriptorPool(device_, pool_, nullptr);
  vkDestroyPipelineLayout(device_, layout_, nullptr);
  vkDestroyDescriptorSetLayout(device_, set_layout_, nullptr);
}

void Kernel::create_layout() {
  std::array<VkDescriptorSetLayoutBinding, 2> bindings{};
  for (std::uint32_t i = 0; i < 2; ++i) {
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  }
  auto set = of_type<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  set.bindingCount = 2;
  set.pBindings = bindings.data();
  check(vkCreateDescriptorSetLayout(device_, &set, nullptr, &set_layout_), "vkCreateDescriptorSetLayout");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
  auto info = of_type<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout_;
  info.pushConstantRangeCount = 1;
  info.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device_, &info, nullptr, &layout_), "vkCreatePipelineLayout");
}

void Kernel::bind(const std::array<VkBuffer, 2>& buffers) {
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
  auto pool = of_type<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  pool.maxSets = 1;
  pool.poolSizeCount = 1;
  pool.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device_, &pool, nullptr, &pool_), "vkCreateDescriptorPool");
  auto sets = of_type<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  sets.descriptorPool = pool_;
  sets.descriptorSetCount = 1;
  sets.pSetLayouts = &set_layout_;
  check(vkAllocateDescriptorSets(device_, &sets, &set_), "vkAllocateDescriptorSets");
  for (std::uint32_t i = 0; i < 2; ++i) {
    const VkDescriptorBufferInfo whole{buffers[i], 0, VK_WHOLE_SIZE};
    auto write = of_type<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
    write.dstSet = set_;
    write.dstBinding = i;
    write.descriptorCount = 1;
    write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    write.pBufferInfo = &whole;
    vkUpdateDescriptorSets(device_, 1, &write, 0, nullptr);
  }
}

void Kernel::create_pipeline(const std::vector<std::uint32_t>& spirv) {
  auto module = of_type<VkShaderModuleCreateInfo>(VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO);
  module.codeSize = 4 * spirv.size();
  module.pCode = spirv.data();
  auto info = of_type<VkComputePipelineCreateInfo>(VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO);
  info.layout = layout_;
  info.stage = of_type<VkPipelineShaderStageCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO);
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.pName = "main";
  check(vkCreateShaderModule(device_, &module, nullptr, &info.stage.module), "vkCreateShaderModule");
  const VkResult result = vkCreateComputePipelines(device_, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_);
  vkDestroyShaderModule(device_, info.stage.module, nullptr);
  check(result, "vkCreateComputePipelines");
}

void Kernel::dispatch(VkCommandBuffer commands, const Push& push) const {
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &set_, 0, nullptr);
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vkCmdDispatch(commands, (push.count + 63) / 64, 1, 1);
}

Commands::Commands(const Machine& machine) : machine_(machine) {
  auto pool = of_type<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = machine.family;
  check(vkCreateCommandPool(machine.device, &pool, nullptr, &pool_), "vkCreateCommandPool");
  auto info = of_type<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_;
  info.commandBufferCount = 1;
  check(vkAllocateCommandBuffers(machine.device, &info, &commands_), "vkAllocateCommandBuffers");
  const auto fence = of_type<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  check(vkCreateFence(machine.device, &fence, nullptr, &fence_), "vkCreateFence");
}

Commands::~Commands() {
  vkQueueWaitIdle(machine_.queue);
  vkDestroyFence(machine_.device, fence_, nullptr);
  vkDestroyCommandPool(machine_.device, pool_, nullptr);
}

VkCommandBuffer Commands::begin() {
  check(vkResetCommandPool(machine_.device, pool_, 0), "vkResetCommandPool");
  const auto info = of_type<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  check(vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
  return commands_;
}

void Commands::end() {
  check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
}

void Commands::submit() {
  auto info = of_type<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_;
  check(vkQueueSubmit(machine_.queue, 1, &info, fence_), "vkQueueSubmit");
}

void Commands::wait() {
  check(vkWaitForFences(machine_.device, 1, &fence_, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vkResetFences(machine_.device, 1, &fence_), "vkResetFences");
}

}  // namespace samples::own_device
