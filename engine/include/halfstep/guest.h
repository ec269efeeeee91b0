#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

/// Halfstep as a guest on an application's Vulkan device: what the application hands over. A handle of a dispatchable
/// type (VkDevice, VkQueue, VkCommandBuffer) is a pointer, any other (VkBuffer, VkSemaphore) a number of 64 bits.
namespace halfstep {

/// An application's own Vulkan objects, for Device::adopt. Each handle is the Vulkan handle of that type, as a pointer.
/// The instance must have been created for Vulkan 1.1 or later. All objects must outlive the Device.
struct AdoptedDevice {
  void* instance = nullptr;         ///< VkInstance
  void* physical_device = nullptr;  ///< VkPhysicalDevice
  void* device = nullptr;           ///< VkDevice
  void* queue = nullptr;            ///< VkQueue, from a queue family with compute
  std::uint32_t queue_family = 0;   ///< the index of the queue's family

  /// PFN_vkGetInstanceProcAddr; if null, the system's Vulkan loader is used.
  void (*get_instance_proc_addr)() = nullptr;
  /// const VkAllocationCallbacks*, for every object that Halfstep creates on the device; if null, the driver's own. It
  /// must outlive the Device and what was made with it.
  const void* allocator = nullptr;

  // What the application enabled when it created the device. Features that are not set here are not used. Matrix units
  // and mixed dot products are not used on an adopted device: there is no way yet to say that they are enabled.
  bool storage_buffer_16bit_access = false;  ///< VkPhysicalDevice16BitStorageFeatures::storageBuffer16BitAccess
  bool shader_float16 = false;               ///< VkPhysicalDeviceShaderFloat16Int8Features::shaderFloat16
  /// VK_KHR_shader_float_controls, or a Vulkan 1.2 instance and device, which have it without being asked. Without it
  /// GPUs may lose subnormal f16 numbers, so f16 is converted by integers and stored in words of 32 bits, which is
  /// slower.
  bool shader_float_controls = false;
  bool subgroup_size_control = false;  ///< VK_EXT_subgroup_size_control with both of its features
  bool buffer_device_address = false;  ///< VK_KHR_buffer_device_address, its feature and shaderInt64
  bool timeline_semaphore = false;     ///< VK_KHR_timeline_semaphore and its feature: for QueueSemaphore::value
  /// VK_EXT_debug_utils, enabled for the instance: buffers and pipelines get names, and dispatches are labelled in
  /// command buffers, as the application's own debug callback and tools such as RenderDoc show them.
  bool debug_utils = false;

  /// Called before and after every submit to the queue, for an application that submits to it from other threads. Both
  /// or neither: Device::adopt throws Error for one. A thread that already holds the lock may call what submits if the
  /// lock is recursive.
  std::function<void()> lock_queue;
  std::function<void()> unlock_queue;
};

/// A semaphore of an application, for Device::wait_for and Device::signal.
struct QueueSemaphore {
  std::uint64_t semaphore = 0;           ///< VkSemaphore
  std::optional<std::uint64_t> value{};  ///< of a timeline semaphore, to wait for or to signal; empty: a binary one
};

/// A range of an application's memory on an adopted device, as a tensor: f32, or u32 for an input of integers, in
/// row-major order without padding. Programs read and write it in place, on the device; nothing passes through the
/// host. What they read is what it contains when the device runs them: a step of Trainer::run_for that is open reads
/// its later micro-batches in later calls. On the queue that was adopted no barrier is needed on either side: all that
/// is submitted of programs that use such memory begins and ends with one for all stages. Work on another queue needs
/// semaphores (Device::wait_for and signal), and a transfer of ownership if the buffer is exclusive to a family. It
/// must stay, as it is, while there is a trainer or predictor that uses it, and be destroyed by the application after
/// these.
struct DeviceBuffer {
  /// VkBuffer, created for use as a storage buffer, with its memory bound.
  std::uint64_t buffer = 0;
  /// VkDeviceMemory, in the place of a buffer: Halfstep binds a buffer of its own to the range, which it destroys with
  /// the trainer or predictor. The range must not overlap that of another DeviceBuffer.
  std::uint64_t memory = 0;
  std::uint32_t memory_type = 0;  ///< of `memory`
  /// In bytes. Of a buffer, a multiple of 4; of memory, of the alignment that the device asks for (256 always is).
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  ///< of the tensor, or more; of a step with micro-batches, of all, one after the other
  /// VkBufferUsageFlags that `buffer` was created with, which Vulkan does not tell; 0: not told, and not checked.
  std::uint32_t usage = 0;
};

/// The memory of an application that a predictor works on.
struct SharedBuffers {
  std::map<std::string, DeviceBuffer> inputs{};  ///< of these inputs, which are given no values
  std::optional<DeviceBuffer> output{};          ///< empty: run() returns it
};

}  // namespace halfstep
