#pragma once

#include <halfstep/device.h>

#include <vulkan/vulkan.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/child.h"
#include "base/held.h"
#include "plan/target.h"
#include "vk/device/capabilities.h"
#include "vk/device/loader.h"
#include "vk/device/notes.h"
#include "vk/device/settings.h"

namespace halfstep::vk {

class PipelinePool;

/// An instance, a device and one compute queue: opened here, or an application's own. Objects made with a context keep
/// it alive.
class Context : public std::enable_shared_from_this<Context> {
 public:
  /// See Device::open.
  static std::shared_ptr<Context> open(std::string_view selector, const DeviceSettings& settings);
  /// See Device::adopt.
  static std::shared_ptr<Context> adopt(const AdoptedDevice& handles, const DeviceSettings& settings);
  /// See Device::list.
  static std::vector<DeviceInfo> list(const DeviceSettings& settings);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  VkDevice device() const { return device_; }
  const DeviceTable& table() const { return table_; }
  const Capabilities& capabilities() const { return capabilities_; }
  const Settings& settings() const { return settings_; }
  const plan::Target& target() const { return target_; }
  const DeviceInfo& info() const { return info_; }
  std::uint32_t queue_family() const { return capabilities_.queue_family.value(); }
  /// Runs work that may crash the driver; null if there is no such work, or forking is not allowed.
  process::Child* child() const { return child_.get(); }
  /// Whether the device was opened here, and so only with the features that Capabilities tells of.
  bool owned() const { return owned_; }
  /// Whether the Khronos validation layer is enabled for this context (never for an adopted one).
  bool validating() const { return owned_ && settings_.validation; }

  /// For every object that is created on the device, and when it is destroyed: an adopted device's, or null.
  const VkAllocationCallbacks* allocator() const { return allocator_; }
  /// Whether objects are named and dispatches labelled.
  bool has_debug_utils() const { return table_.vkSetDebugUtilsObjectNameEXT != nullptr; }
  /// To hold over a call that labels commands or drops their labels (begins, resets or frees them): validation layers
  /// before 1.3.243 keep all labels in one map and change it without a lock (Vulkan-ValidationLayers, issue 5172).
  /// Locks nothing without has_debug_utils().
  std::unique_lock<std::mutex> lock_labels() {
    return has_debug_utils() ? std::unique_lock(labels_mutex_) : std::unique_lock<std::mutex>();
  }
  /// Names an object of the device for debuggers and validation; no-op without has_debug_utils().
  template <typename Handle>
  void name(VkObjectType type, Handle handle, const std::string& text) const {
    if (has_debug_utils()) name_object(type, (std::uint64_t)handle, text);  // NOLINT: a pointer or a number
  }

  /// Bytes of the heaps that shaders use, and how much of them is free: all, where the driver does not say.
  struct HeapBytes {
    std::uint64_t all = 0;
    std::uint64_t free = 0;
  };
  HeapBytes heap_bytes() const;
  /// What is compiled for all who work on the device. The first call makes it, and throws Error where that fails.
  PipelinePool& pipeline_pool();
  /// Bytes of the memory that Buffers on this context have.
  std::uint64_t buffer_bytes() const { return buffer_bytes_; }
  void count_buffer_bytes(std::int64_t change) { buffer_bytes_ += static_cast<std::uint64_t>(change); }

  /// vkQueueSubmit under the queue's lock. For a shared queue, also holds the application's lock.
  void submit(std::span<const VkSubmitInfo> batches, VkFence fence);
  /// See Device::wait_for and Device::signal.
  void wait_for(std::span<const QueueSemaphore> semaphores);
  void signal(std::span<const QueueSemaphore> semaphores);

 private:
  explicit Context(const DeviceSettings& settings);
  void open_device(VkPhysicalDevice physical_device);
  void take_matrix_shapes(std::vector<plan::MatrixShape> shapes);
  void find_matrix_shapes(std::shared_ptr<process::Child> child, std::size_t index);
  void use_queue_of(const AdoptedDevice& handles);
  void describe(std::uint32_t index);
  void name_object(VkObjectType type, std::uint64_t handle, const std::string& text) const;

  Settings settings_;
  InstanceTable instance_;
  VkPhysicalDevice physical_device_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  DeviceTable table_{};
  Capabilities capabilities_;
  plan::Target target_;
  DeviceInfo info_;
  std::mutex queue_mutex_;
  std::atomic<std::uint64_t> buffer_bytes_ = 0;
  const VkAllocationCallbacks* allocator_ = nullptr;
  bool timeline_semaphores_ = false;
  std::function<void()> lock_;
  std::function<void()> unlock_;
  std::shared_ptr<process::Child> child_;
  bool owned_ = true;
  std::mutex labels_mutex_;
  std::mutex pool_mutex_;
  std::unique_ptr<PipelinePool> pipeline_pool_;  ///< null until it is asked for
};

/// Gives the engine access to the internals of public handles.
struct Access {
  static Context& context(const Device& device) { return held(device.context_, "device", "an open device"); }
};

/// Access::context, for short.
inline Context& context_of(const Device& device) {
  return Access::context(device);
}

}  // namespace halfstep::vk
