#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  /// An application's memory, which stays the application's: its buffer, or a buffer of this on its memory. Throws
  /// Error if the memory cannot be bound where it is.
  Buffer(Context& context, const DeviceBuffer& shared, std::string name);
  /// Memory for shaders only that consists of several buffers, of which all but the first begin at `begins`, in bytes;
  /// those that begin at `bytes` or after it are left out. Each is no larger than the device's largest buffer.
  static Buffer in_parts(Context& context, std::uint64_t bytes, std::vector<std::uint64_t> begins, std::string name);
  /// Such memory of parts of Target::part_bytes, the last one of what is left, where it is larger than that and than
  /// the device's largest buffer.
  static Buffer in_parts(Context& context, std::uint64_t bytes, std::string name);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;

  /// Not of one in parts.
  VkBuffer handle() const { return buffer_; }
  struct Place {
    VkBuffer buffer = VK_NULL_HANDLE;
    std::uint64_t offset = 0;
  };
  /// Where a range lies. Throws Error if it lies in two parts.
  Place at(std::uint64_t offset, std::uint64_t bytes) const;
  /// Bytes from `offset` to the end of the buffer, or of the part, that it lies in.
  std::uint64_t left(std::uint64_t offset) const;
  std::uint64_t bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  /// The device address of a range; 0 if the device has no Capabilities::buffer_address. Throws Error as at() does.
  std::uint64_t address(std::uint64_t offset, std::uint64_t bytes) const;
  std::uint64_t address() const { return address(0, bytes_); }

  /// The mapped memory; null for Memory::device.
  std::byte* mapped() const { return mapped_; }
  /// Makes the host's writes to a range available to later submits. No-op on coherent memory.
  void flush(std::uint64_t offset, std::uint64_t size) const;
  /// Makes the writes of a finished submit (made visible to the host by Recorder::host_barrier) readable. No-op on
  /// coherent memory.
  void invalidate(std::uint64_t offset, std::uint64_t size) const;

 private:
  std::size_t part_at(std::uint64_t offset) const;
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
  std::vector<Buffer> parts_{};
  std::vector<std::uint64_t> begins_{};  ///< of each part
};

}  // namespace halfstep::vk
