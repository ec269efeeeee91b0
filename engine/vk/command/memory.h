#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "vk/command/memory_types.h"
#include "vk/device/context.h"

namespace halfstep::vk {

/// A storage buffer (also usable as source and target of copies) with its own memory. Its contents are initially
/// undefined.
class Buffer {
 public:
  Buffer() = default;
  /// Throws Error that names the buffer, its size and the limit or heap if there is no memory for it. A size of zero is
  /// rounded up to four bytes.
  Buffer(Context& context, std::uint64_t bytes, Memory intent, std::string name);
  /// An application's memory, which stays the application's: its buffer, or a buffer of this on its memory. Throws Error
  /// if the memory cannot be bound where it is.
  Buffer(Context& context, const DeviceBuffer& shared, std::string name);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  VkBuffer handle() const { return buffer_; }
  std::uint64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  /// Its device address; 0 if the device has no Capabilities::buffer_address.
  std::uint64_t address() const;

  /// The mapped memory; null for Memory::device.
  std::byte* mapped() const { return mapped_; }
  /// Makes the host's writes to a range available to later submits. No-op on coherent memory.
  void flush(std::uint64_t offset, std::uint64_t size) const;
  /// Makes the writes of a finished submit (made visible to the host by Recorder::host_barrier) readable. No-op on
  /// coherent memory.
  void invalidate(std::uint64_t offset, std::uint64_t size) const;

 private:
  void allocate(Memory intent);
  void bind_shared(const DeviceBuffer& shared);
  VkMappedMemoryRange atoms(std::uint64_t offset, std::uint64_t size) const;
  void release() noexcept;

  std::shared_ptr<Context> context_;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::uint64_t bytes_ = 0;
  std::uint64_t allocated_ = 0;
  std::byte* mapped_ = nullptr;
  bool coherent_ = false;
  bool borrowed_ = false;  ///< the handle is an application's
  std::string name_;
};

}  // namespace halfstep::vk
