#pragma once

#include <halfstep/device.h>

#include <vulkan/vulkan.h>

#include <chrono>
#include <cstdint>
#include <span>

#include "vk/device/loader.h"

namespace halfstep::testing {

/// A device as an application would make it: the one that the tests run on. Nothing optional is enabled but timeline
/// semaphores, where the device has them.
class Application {
 public:
  Application();
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  /// For Device::adopt, with a lock for its queue.
  AdoptedDevice handles();
  bool has_timelines() const { return timelines_; }
  /// A function of the device: function<PFN_vkCreateSemaphore>("vkCreateSemaphore").
  template <typename Function>
  Function function(const char* name) const {
    return reinterpret_cast<Function>(instance_.get_device_proc(device_, name));
  }
  VkDevice device() const { return device_; }
  std::uint32_t family() const { return family_; }
  const vk::DeviceTable& table() const { return table_; }
  /// Submits to the queue, without a fence.
  void submit(const VkSubmitInfo& batch);
  void wait_idle();
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
  bool timelines_ = false;
  vk::DeviceTable table_{};
};

/// A storage buffer of the application's, which it maps.
class ApplicationBuffer {
 public:
  ApplicationBuffer(const Application& application, std::uint64_t bytes);
  ~ApplicationBuffer();
  ApplicationBuffer(const ApplicationBuffer&) = delete;
  ApplicationBuffer& operator=(const ApplicationBuffer&) = delete;

  VkBuffer handle() const { return buffer_; }
  VkDeviceMemory memory() const { return memory_; }
  std::uint32_t memory_type() const { return type_; }
  /// Its contents; what the device wrote must have finished, and memory is coherent.
  std::span<float> floats() const { return {mapped_, bytes_ / sizeof(float)}; }

 private:
  const Application& application_;
  std::uint64_t bytes_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint32_t type_ = 0;
  float* mapped_ = nullptr;
};

/// A handle as the public interface takes it.
template <typename Handle>
std::uint64_t number(Handle handle) {
  return (std::uint64_t)handle;  // NOLINT: a pointer or a number
}

/// A command buffer of the application's, which is being recorded at first.
class Commands {
 public:
  explicit Commands(Application& application);
  ~Commands();
  Commands(const Commands&) = delete;
  Commands& operator=(const Commands&) = delete;

  void end();
  /// Submits it, and waits.
  void run();
  VkCommandBuffer handle() const { return commands_; }

 private:
  Application& application_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
};

/// A semaphore of the application's, binary or of a timeline that begins at 0.
class Semaphore {
 public:
  Semaphore(const Application& application, bool timeline);
  ~Semaphore();
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  VkSemaphore handle() const { return semaphore_; }
  QueueSemaphore binary() const { return {number(semaphore_), {}}; }
  QueueSemaphore at(std::uint64_t value) const { return {number(semaphore_), value}; }
  void signal(std::uint64_t value) const;
  /// Waits until it has the value, at most that long.
  bool reaches(std::uint64_t value, std::chrono::nanoseconds within) const;

 private:
  const Application& application_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
};

}  // namespace halfstep::testing
