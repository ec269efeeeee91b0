#include "harness/incoherent.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "harness/device.h"
#include "vk/device/loader.h"

namespace halfstep::testing {
namespace {

constexpr VkDeviceSize atom = 256;

/// An allocation that is mapped, from its first byte.
struct Mapped {
  std::byte* memory = nullptr;
  std::vector<std::byte> copy;  ///< which the engine has
};

struct Incoherent {
  std::mutex mutex;
  std::map<VkDeviceMemory, VkDeviceSize> sizes;
  std::map<VkDeviceMemory, Mapped> mapped;
  std::size_t flushed = 0;
  std::size_t invalidated = 0;
  PFN_vkGetInstanceProcAddr get_proc = nullptr;
  PFN_vkGetDeviceProcAddr get_device_proc = nullptr;
  PFN_vkGetPhysicalDeviceProperties properties = nullptr;
  PFN_vkGetPhysicalDeviceMemoryProperties memory_properties = nullptr;
  PFN_vkAllocateMemory allocate = nullptr;
  PFN_vkFreeMemory free = nullptr;
  PFN_vkMapMemory map = nullptr;
};

Incoherent& layer() {
  static Incoherent incoherent;
  return incoherent;
}

VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice device, VkPhysicalDeviceProperties* properties) {
  layer().properties(device, properties);
  properties->limits.nonCoherentAtomSize = atom;
}

VKAPI_ATTR void VKAPI_CALL get_memory_properties(VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties* memory) {
  layer().memory_properties(device, memory);
  for (VkMemoryType& type : std::span(memory->memoryTypes).first(memory->memoryTypeCount)) {
    type.propertyFlags &= ~static_cast<VkMemoryPropertyFlags>(VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
  }
}

VKAPI_ATTR VkResult VKAPI_CALL allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                                               const VkAllocationCallbacks* allocator, VkDeviceMemory* memory) {
  const VkResult result = layer().allocate(device, info, allocator, memory);
  const std::lock_guard lock(layer().mutex);
  if (result == VK_SUCCESS) layer().sizes[*memory] = info->allocationSize;
  return result;
}

VKAPI_ATTR void VKAPI_CALL free_memory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks* allocator) {
  {
    const std::lock_guard lock(layer().mutex);
    layer().sizes.erase(memory);
    layer().mapped.erase(memory);
  }
  layer().free(device, memory, allocator);
}

/// Only whole allocations are mapped, once each.
VKAPI_ATTR VkResult VKAPI_CALL map_memory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset,
                                          VkDeviceSize size, VkMemoryMapFlags flags, void** address) {
  void* found = nullptr;
  if (offset != 0 || size != VK_WHOLE_SIZE) return VK_ERROR_MEMORY_MAP_FAILED;
  const VkResult result = layer().map(device, memory, offset, size, flags, &found);
  if (result != VK_SUCCESS) return result;
  const std::lock_guard lock(layer().mutex);
  Mapped& mapped = layer().mapped[memory];
  mapped.memory = static_cast<std::byte*>(found);
  mapped.copy.assign(mapped.memory, mapped.memory + layer().sizes.at(memory));
  *address = mapped.copy.data();
  return VK_SUCCESS;
}

/// Copies ranges of atoms one way or the other.
template <typename Copy>
VkResult for_each_range(std::uint32_t count, const VkMappedMemoryRange* ranges, const Copy& copy) {
  for (const VkMappedMemoryRange& range : std::span(ranges, count)) {
    const auto found = layer().mapped.find(range.memory);
    if (found == layer().mapped.end() || range.offset % atom != 0) return VK_ERROR_UNKNOWN;
    const VkDeviceSize all = found->second.copy.size();
    const VkDeviceSize size = range.size == VK_WHOLE_SIZE ? all - std::min(range.offset, all) : range.size;
    if (range.offset + size > all || (size % atom != 0 && range.offset + size != all)) return VK_ERROR_UNKNOWN;
    copy(found->second.memory + range.offset, found->second.copy.data() + range.offset, size);
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL flush(VkDevice /*device*/, std::uint32_t count, const VkMappedMemoryRange* ranges) {
  const std::lock_guard lock(layer().mutex);
  layer().flushed += count;
  return for_each_range(count, ranges, [](std::byte* memory, const std::byte* copy, std::size_t size) {
    std::memcpy(memory, copy, size);
  });
}

VKAPI_ATTR VkResult VKAPI_CALL invalidate(VkDevice /*device*/, std::uint32_t count, const VkMappedMemoryRange* ranges) {
  const std::lock_guard lock(layer().mutex);
  layer().invalidated += count;
  return for_each_range(count, ranges, [](const std::byte* memory, std::byte* copy, std::size_t size) {
    std::memcpy(copy, memory, size);
  });
}

/// The function that takes the place of one of this name, which it calls; `next` for others.
PFN_vkVoidFunction replaced(std::string_view name, PFN_vkVoidFunction next) {
  if (next == nullptr) return nullptr;
  const auto take = [&](auto& kept, auto* ours) {
    kept = reinterpret_cast<std::remove_reference_t<decltype(kept)>>(next);
    return reinterpret_cast<PFN_vkVoidFunction>(ours);
  };
  Incoherent& l = layer();
  if (name == "vkGetPhysicalDeviceProperties") return take(l.properties, &get_properties);
  if (name == "vkGetPhysicalDeviceMemoryProperties") return take(l.memory_properties, &get_memory_properties);
  if (name == "vkAllocateMemory") return take(l.allocate, &allocate_memory);
  if (name == "vkFreeMemory") return take(l.free, &free_memory);
  if (name == "vkMapMemory") return take(l.map, &map_memory);
  if (name == "vkFlushMappedMemoryRanges") return reinterpret_cast<PFN_vkVoidFunction>(&flush);
  if (name == "vkInvalidateMappedMemoryRanges") return reinterpret_cast<PFN_vkVoidFunction>(&invalidate);
  return next;
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char* name) {
  return replaced(name, layer().get_device_proc(device, name));
}

VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char* name) {
  const PFN_vkVoidFunction found = layer().get_proc(instance, name);
  if (std::string_view(name) != "vkGetDeviceProcAddr") return replaced(name, found);
  layer().get_device_proc = reinterpret_cast<PFN_vkGetDeviceProcAddr>(found);
  return reinterpret_cast<PFN_vkVoidFunction>(&device_function);
}

}  // namespace

IncoherentVulkan::IncoherentVulkan() {
  device();  // is opened without this
  layer().get_proc = vk::load_global().get_proc;
  layer().flushed = layer().invalidated = 0;
  vk::replace_loader(&instance_function);
}

IncoherentVulkan::~IncoherentVulkan() {
  vk::replace_loader(nullptr);
}

std::size_t IncoherentVulkan::flushed() const {
  const std::lock_guard lock(layer().mutex);
  return layer().flushed;
}

std::size_t IncoherentVulkan::invalidated() const {
  const std::lock_guard lock(layer().mutex);
  return layer().invalidated;
}

}  // namespace halfstep::testing
