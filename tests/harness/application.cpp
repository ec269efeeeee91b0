#include "harness/application.h"

#include <vector>

#include "harness/device.h"
#include "vk/device/capabilities.h"
#include "vk/device/instance.h"
#include "vk/device/result.h"
#include "vk/device/settings.h"
#include "vk/device/structure.h"

namespace halfstep::testing {

Application::Application() : instance_(vk::create_instance(vk::settings({}).validation)) {
  const DeviceInfo wanted = testing::device().info();
  std::vector<VkPhysicalDevice> devices(Device::list().size());
  auto count = static_cast<std::uint32_t>(devices.size());
  vk::check(instance_.enumerate_physical_devices(instance_.instance, &count, devices.data()), "enumerate");
  physical_ = devices.at(wanted.index);
  family_ = vk::query(instance_, physical_).queue_family.value();
  const float priority = 1;
  auto queue = vk::structure<VkDeviceQueueCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO);
  queue.queueFamilyIndex = family_;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  auto info = vk::structure<VkDeviceCreateInfo>(VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO);
  timelines_ = vk::query(instance_, physical_).timeline_semaphore;
  auto timeline = vk::structure<VkPhysicalDeviceTimelineSemaphoreFeaturesKHR>(
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES_KHR);
  timeline.timelineSemaphore = VK_TRUE;
  const char* const extension = VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME;
  if (timelines_) {
    info.pNext = &timeline;
    info.enabledExtensionCount = 1;
    info.ppEnabledExtensionNames = &extension;
  }
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  vk::check(instance_.create_device(physical_, &info, nullptr, &device_), "vkCreateDevice");
  table_ = vk::load_device(instance_, device_);
  table_.vkGetDeviceQueue(device_, family_, 0, &queue_);
}

Application::~Application() {
  vk::destroy_device(instance_, device_);
  vk::destroy_instance(instance_);
}

AdoptedDevice Application::handles() {
  AdoptedDevice handles;
  handles.instance = instance_.instance;
  handles.physical_device = physical_;
  handles.device = device_;
  handles.queue = queue_;
  handles.queue_family = family_;
  handles.timeline_semaphore = timelines_;
  handles.lock_queue = [this] { ++locks; };
  handles.unlock_queue = [this] { ++unlocks; };
  return handles;
}

bool Application::works() {
  VkFence fence = VK_NULL_HANDLE;
  const auto info = vk::structure<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  bool good = table_.vkCreateFence(device_, &info, nullptr, &fence) == VK_SUCCESS;
  good = good && table_.vkQueueSubmit(queue_, 0, nullptr, fence) == VK_SUCCESS;
  good = good && table_.vkWaitForFences(device_, 1, &fence, VK_TRUE, UINT64_MAX) == VK_SUCCESS;
  table_.vkDestroyFence(device_, fence, nullptr);
  return good;
}

void Application::submit(const VkSubmitInfo& batch) {
  vk::check(table_.vkQueueSubmit(queue_, 1, &batch, VK_NULL_HANDLE), "vkQueueSubmit");
}

void Application::wait_idle() {
  vk::check(function<PFN_vkDeviceWaitIdle>("vkDeviceWaitIdle")(device_), "vkDeviceWaitIdle");
}

ApplicationBuffer::ApplicationBuffer(const Application& application, std::uint64_t bytes)
    : application_(application), bytes_(bytes) {
  const vk::DeviceTable& table = application.table();
  auto info = vk::structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = bytes;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  vk::check(table.vkCreateBuffer(application.device(), &info, nullptr, &buffer_), "vkCreateBuffer");
  VkMemoryRequirements needs;
  table.vkGetBufferMemoryRequirements(application.device(), buffer_, &needs);
  constexpr VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkPhysicalDeviceMemoryProperties& memory = context().capabilities().memory;
  while ((needs.memoryTypeBits >> type_ & 1) == 0 || (memory.memoryTypes[type_].propertyFlags & wanted) != wanted) {
    ++type_;
  }
  auto allocation = vk::structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  allocation.allocationSize = needs.size;
  allocation.memoryTypeIndex = type_;
  vk::check(table.vkAllocateMemory(application.device(), &allocation, nullptr, &memory_), "vkAllocateMemory");
  vk::check(table.vkBindBufferMemory(application.device(), buffer_, memory_, 0), "vkBindBufferMemory");
  void* mapped = nullptr;
  vk::check(table.vkMapMemory(application.device(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  mapped_ = static_cast<float*>(mapped);
}

ApplicationBuffer::~ApplicationBuffer() {
  application_.table().vkDestroyBuffer(application_.device(), buffer_, nullptr);
  application_.table().vkFreeMemory(application_.device(), memory_, nullptr);
}

Commands::Commands(Application& application) : application_(application) {
  auto pool = vk::structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = application.family();
  const vk::DeviceTable& table = application.table();
  vk::check(table.vkCreateCommandPool(application.device(), &pool, nullptr, &pool_), "vkCreateCommandPool");
  auto info = vk::structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_;
  info.commandBufferCount = 1;
  vk::check(table.vkAllocateCommandBuffers(application.device(), &info, &commands_), "vkAllocateCommandBuffers");
  const auto begin = vk::structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
  vk::check(table.vkBeginCommandBuffer(commands_, &begin), "vkBeginCommandBuffer");
}

Commands::~Commands() {
  application_.table().vkDestroyCommandPool(application_.device(), pool_, nullptr);
}

void Commands::end() {
  vk::check(application_.table().vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
}

void Commands::run() {
  auto info = vk::structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  info.commandBufferCount = 1;
  info.pCommandBuffers = &commands_;
  application_.submit(info);
  application_.wait_idle();
}

Semaphore::Semaphore(const Application& application, bool timeline) : application_(application) {
  auto type = vk::structure<VkSemaphoreTypeCreateInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO_KHR);
  type.semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE_KHR;
  auto info = vk::structure<VkSemaphoreCreateInfo>(VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO);
  if (timeline) info.pNext = &type;
  const auto create = application.function<PFN_vkCreateSemaphore>("vkCreateSemaphore");
  vk::check(create(application.device(), &info, nullptr, &semaphore_), "vkCreateSemaphore");
}

Semaphore::~Semaphore() {
  application_.function<PFN_vkDestroySemaphore>("vkDestroySemaphore")(application_.device(), semaphore_, nullptr);
}

void Semaphore::signal(std::uint64_t value) const {
  auto info = vk::structure<VkSemaphoreSignalInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO_KHR);
  info.semaphore = semaphore_;
  info.value = value;
  const auto call = application_.function<PFN_vkSignalSemaphoreKHR>("vkSignalSemaphoreKHR");
  vk::check(call(application_.device(), &info), "vkSignalSemaphoreKHR");
}

bool Semaphore::reaches(std::uint64_t value, std::chrono::nanoseconds within) const {
  auto info = vk::structure<VkSemaphoreWaitInfoKHR>(VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO_KHR);
  info.semaphoreCount = 1;
  info.pSemaphores = &semaphore_;
  info.pValues = &value;
  const auto call = application_.function<PFN_vkWaitSemaphoresKHR>("vkWaitSemaphoresKHR");
  return call(application_.device(), &info, static_cast<std::uint64_t>(within.count())) == VK_SUCCESS;
}

}  // namespace halfstep::testing
