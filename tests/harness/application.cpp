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
  const DeviceInfo wanted = device().info();
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

}  // namespace halfstep::testing
