#include "vk/command/memory.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/beyond_limit.h"
#include "vk/device/create.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {
Buffer::Buffer(Context& context, std::uint64_t bytes, Memory intent, std::string name)
    : context_(context.shared_from_this()), bytes_(std::max<std::uint64_t>(bytes, 4)), name_(std::move(name)) {
  const std::uint64_t limit = context.capabilities().max_buffer_bytes;
  if (bytes_ > limit) {
    fail_beyond_limit(ErrorCode::unsupported, "memory",
                      fmt::format("expected {} to take at most {} bytes, the largest buffer of {}, got {}", name_,
                                  limit, context.capabilities().name, bytes_),
                      "a smaller model or batch takes less");
  }
  try {
    auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
    info.size = bytes_;
    info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT |
                 VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    if (context.capabilities().buffer_address) info.usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT_KHR;
    info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
    buffer_ = create(context, context.table().vkCreateBuffer, info, "vkCreateBuffer");
    context.name(VK_OBJECT_TYPE_BUFFER, buffer_, name_);
    allocate(intent);
  } catch (...) {
    release();
    throw;
  }
}

Buffer Buffer::in_parts(Context& context, std::uint64_t bytes, std::vector<std::uint64_t> begins, std::string name) {
  std::erase_if(begins, [&](std::uint64_t begin) { return begin >= bytes; });
  if (begins.empty()) return {context, bytes, Memory::device, std::move(name)};
  begins.insert(begins.begin(), 0);
  Buffer all;
  all.context_ = context.shared_from_this();
  all.bytes_ = bytes;
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::uint64_t end = i + 1 < begins.size() ? begins[i + 1] : bytes;
    all.parts_.emplace_back(context, end - begins[i], Memory::device, fmt::format("{}, part {}", name, i + 1));
  }
  all.begins_ = std::move(begins);
  all.name_ = std::move(name);
  return all;
}

Buffer Buffer::in_parts(Context& context, std::uint64_t bytes, std::string name) {
  std::vector<std::uint64_t> begins;
  if (bytes > context.capabilities().max_buffer_bytes) {
    const std::uint64_t each = context.target().part_bytes;
    for (std::uint64_t begin = each; begin < bytes; begin += each) begins.push_back(begin);
  }
  return in_parts(context, bytes, std::move(begins), std::move(name));
}

Buffer::Place Buffer::at(std::uint64_t offset, std::uint64_t bytes) const {
  if (parts_.empty()) return {buffer_, offset};
  if (bytes > left(offset)) {
    fail("memory", fmt::format("expected {} bytes at {} of {} to lie in one of its {} parts, got {} to the end of one",
                               bytes, offset, name_, parts_.size(), left(offset)));
  }
  const std::size_t part = part_at(offset);
  return {parts_[part].buffer_, offset - begins_[part]};
}

std::uint64_t Buffer::left(std::uint64_t offset) const {
  if (parts_.empty()) return bytes_ - offset;
  const std::size_t part = part_at(offset);
  const std::uint64_t end = begins_[part] + parts_[part].bytes_;
  return end - std::min(offset, end);
}

std::size_t Buffer::part_at(std::uint64_t offset) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(begins_, offset) - begins_.begin()) - 1;
}

Buffer::Buffer(Context& context, const DeviceBuffer& shared, std::string name)
    : context_(context.shared_from_this()), bytes_(shared.bytes), name_(std::move(name)) {
  if (context.owned()) fail("memory", fmt::format("expected an adopted device for {}, got one of its own", name_));
  if (shared.buffer != 0) {
    buffer_ = (VkBuffer)shared.buffer;  // NOLINT: a pointer or a number
    borrowed_ = true;
    // Which may be more than the buffer's size, but is all that Vulkan tells of it.
    VkMemoryRequirements held;
    context.table().vkGetBufferMemoryRequirements(context.device(), buffer_, &held);
    if (shared.bytes > held.size || shared.offset > held.size - shared.bytes) {
      fail("memory", fmt::format("expected {} of {} bytes at {} to lie in its buffer, got one of {} bytes", name_,
                                 shared.bytes, shared.offset, held.size));
    }
    bytes_ += shared.offset;
    return;
  }
  try {
    bind_shared(shared);
  } catch (...) {
    release();
    throw;
  }
}

void Buffer::bind_shared(const DeviceBuffer& shared) {
  auto info = structure<VkBufferCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO);
  info.size = bytes_;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  buffer_ = create(*context_, context_->table().vkCreateBuffer, info, "vkCreateBuffer");
  context_->name(VK_OBJECT_TYPE_BUFFER, buffer_, name_);
  VkMemoryRequirements needed;
  context_->table().vkGetBufferMemoryRequirements(context_->device(), buffer_, &needed);
  if (shared.offset % needed.alignment != 0) {
    fail("memory", fmt::format("expected the memory of {} at a multiple of {} bytes, got {}", name_, needed.alignment,
                               shared.offset));
  }
  if (shared.memory_type >= 32 || (needed.memoryTypeBits >> shared.memory_type & 1) == 0) {
    fail("memory",
         fmt::format("expected memory of a type that buffers can have for {}, got type {}", name_, shared.memory_type));
  }
  const auto memory = (VkDeviceMemory)shared.memory;  // NOLINT: a pointer or a number
  check(context_->table().vkBindBufferMemory(context_->device(), buffer_, memory, shared.offset), "vkBindBufferMemory");
}

void Buffer::allocate(Memory intent) {
  const DeviceTable& table = context_->table();
  const VkPhysicalDeviceMemoryProperties& memory = context_->capabilities().memory;
  VkMemoryRequirements needed;
  table.vkGetBufferMemoryRequirements(context_->device(), buffer_, &needed);
  const std::vector<std::uint32_t> types =
      memory_types(memory, needed.memoryTypeBits, intent, shares_memory(context_->capabilities()));
  auto info = structure<VkMemoryAllocateInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO);
  info.allocationSize = allocated_ = needed.size;
  auto flags = structure<VkMemoryAllocateFlagsInfo>(VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO);
  flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT_KHR;
  if (context_->capabilities().buffer_address) info.pNext = &flags;
  VkResult result = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  for (std::size_t i = 0; i < types.size() && result != VK_SUCCESS; ++i) {
    info.memoryTypeIndex = types[i];
    VkDeviceMemory made = VK_NULL_HANDLE;
    result = table.vkAllocateMemory(context_->device(), &info, context_->allocator(), &made);
    if (result != VK_SUCCESS) continue;
    memory_ = made;
    context_->count_buffer_bytes(static_cast<std::int64_t>(allocated_));
  }
  if (result != VK_SUCCESS) {
    const std::uint32_t heap = types.empty() ? 0 : memory.memoryTypes[types.front()].heapIndex;
    fail(ErrorCode::out_of_memory, "memory",
         fmt::format("expected {} bytes for {}, got {} from heap {} of {} bytes", allocated_, name_, vk::name(result),
                     heap, memory.memoryHeaps[heap].size),
         "make the batch smaller, or close other programs that use the device");
  }
  check(table.vkBindBufferMemory(context_->device(), buffer_, memory_, 0), "vkBindBufferMemory");
  coherent_ = (memory.memoryTypes[info.memoryTypeIndex].propertyFlags & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
  if (intent == Memory::device) return;
  void* address = nullptr;
  check(table.vkMapMemory(context_->device(), memory_, 0, VK_WHOLE_SIZE, 0, &address), "vkMapMemory");
  mapped_ = static_cast<std::byte*>(address);
}

std::uint64_t Buffer::address(std::uint64_t offset, std::uint64_t bytes) const {
  if (!context_->capabilities().buffer_address) return 0;
  const Place place = at(offset, bytes);
  auto info = structure<VkBufferDeviceAddressInfoKHR>(VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO_KHR);
  info.buffer = place.buffer;
  return context_->table().vkGetBufferDeviceAddressKHR(context_->device(), &info) + place.offset;
}

Buffer::~Buffer() {
  release();
}

Buffer::Buffer(Buffer&& other) noexcept {
  *this = std::move(other);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(context_, other.context_);
  std::swap(buffer_, other.buffer_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  std::swap(allocated_, other.allocated_);
  std::swap(mapped_, other.mapped_);
  std::swap(coherent_, other.coherent_);
  std::swap(borrowed_, other.borrowed_);
  std::swap(name_, other.name_);
  std::swap(parts_, other.parts_);
  std::swap(begins_, other.begins_);
  return *this;
}

void Buffer::release() noexcept {
  if (!context_) return;
  if (memory_ != VK_NULL_HANDLE) context_->count_buffer_bytes(-static_cast<std::int64_t>(allocated_));
  if (!borrowed_) context_->table().vkDestroyBuffer(context_->device(), buffer_, context_->allocator());
  context_->table().vkFreeMemory(context_->device(), memory_, context_->allocator());  // unmaps it too
}

void Buffer::flush(std::uint64_t offset, std::uint64_t size) const {
  if (coherent_ || size == 0) return;
  const VkMappedMemoryRange range = atoms(offset, size);
  check(context_->table().vkFlushMappedMemoryRanges(context_->device(), 1, &range), "vkFlushMappedMemoryRanges");
}

void Buffer::invalidate(std::uint64_t offset, std::uint64_t size) const {
  if (coherent_ || size == 0) return;
  const VkMappedMemoryRange range = atoms(offset, size);
  check(context_->table().vkInvalidateMappedMemoryRanges(context_->device(), 1, &range),
        "vkInvalidateMappedMemoryRanges");
}

/// The range, extended to multiples of nonCoherentAtomSize within the allocation.
VkMappedMemoryRange Buffer::atoms(std::uint64_t offset, std::uint64_t size) const {
  const std::uint64_t atom = context_->capabilities().limits.nonCoherentAtomSize;
  const std::uint64_t begin = offset / atom * atom;
  const std::uint64_t end = (offset + size + atom - 1) / atom * atom;
  auto range = structure<VkMappedMemoryRange>(VK_STRUCTURE_TYPE_MAPPED_MEMORY_RANGE);
  range.memory = memory_;
  range.offset = begin;
  range.size = end >= allocated_ ? VK_WHOLE_SIZE : end - begin;
  return range;
}

}  // namespace halfstep::vk
