#pragma once

#include <halfstep/device.h>

#include <vulkan/vulkan.h>

#include <cstdint>

#include "vk/device/loader.h"

namespace halfstep::testing {

/// A device as an application would make it, with nothing optional enabled: the one that the tests run on.
class Application {
 public:
  Application();
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  /// For Device::adopt, with a lock for its queue.
  AdoptedDevice handles();
  /// Submits something of the application's own and waits for it.
  bool works();

  int locks = 0;
  int unlocks = 0;

 private:
  vk::InstanceTable instance_;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  vk::DeviceTable table_{};
};

}  // namespace halfstep::testing
