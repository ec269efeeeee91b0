#include "vk/command/memory_types.h"

#include <algorithm>

namespace halfstep::vk {
namespace {

constexpr VkMemoryPropertyFlags device_local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags visible = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT;
constexpr VkMemoryPropertyFlags coherent = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

/// The required, preferred and undesired flags of a memory type; earlier flags weigh more.
struct Wishes {
  VkMemoryPropertyFlags required;
  std::vector<VkMemoryPropertyFlags> wanted;
  std::vector<VkMemoryPropertyFlags> unwanted;
};

Wishes wishes(Memory intent, bool shared, bool window) {
  switch (intent) {
    case Memory::upload:  // written in order and read once
      if (window) return {visible, {coherent}, {device_local, cached}};
      return {visible, {coherent, device_local}, {cached}};  // shaders then read no memory across the bus
    case Memory::readback:                                   // reading uncached memory is very slow
      return {visible, {cached, coherent}, {device_local}};
    case Memory::device:
      break;
  }
  // Host-visible device memory may be a small window; leave it to others.
  return {shared ? 0 : device_local, {device_local}, {visible}};
}

int score(VkMemoryPropertyFlags flags, const Wishes& wishes) {
  int score = 0;
  for (const VkMemoryPropertyFlags wanted : wishes.wanted) score = 2 * score + ((flags & wanted) != 0 ? 1 : 0);
  for (const VkMemoryPropertyFlags unwanted : wishes.unwanted) score = 2 * score + ((flags & unwanted) == 0 ? 1 : 0);
  return score;
}

/// Whether the host sees no more than a small part of the device's own memory: without a resizable BAR, 256 MiB, which
/// drivers and other programs use too.
bool sees_a_window(const VkPhysicalDeviceMemoryProperties& memory) {
  VkDeviceSize largest = 0;
  VkDeviceSize seen = 0;
  for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[type].propertyFlags;
    const VkDeviceSize size = memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
    if ((flags & device_local) == 0) continue;
    largest = std::max(largest, size);
    if ((flags & visible) != 0) seen = std::max(seen, size);
  }
  return seen < largest / 2;
}

}  // namespace

std::vector<std::uint32_t> memory_types(const VkPhysicalDeviceMemoryProperties& memory, std::uint32_t allowed,
                                        Memory intent, bool shared) {
  constexpr VkMemoryPropertyFlags special = VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
                                            VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD;
  const Wishes wished = wishes(intent, shared, sees_a_window(memory));
  const auto flags = [&](std::uint32_t type) { return memory.memoryTypes[type].propertyFlags; };
  std::vector<std::uint32_t> types;
  for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    const bool can = (allowed >> type & 1) != 0 && (flags(type) & wished.required) == wished.required;
    if (can && (flags(type) & special) == 0) types.push_back(type);
  }
  std::stable_sort(types.begin(), types.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return score(flags(a), wished) > score(flags(b), wished); });
  return types;
}

}  // namespace halfstep::vk
