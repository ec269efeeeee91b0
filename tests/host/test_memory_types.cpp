// Which memory buffers get on devices that others have reported: tests/host/memory_of_devices.json.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "vk/command/memory_types.h"

using namespace halfstep;
using nlohmann::json;
using vk::Memory;

namespace {

VkMemoryPropertyFlags flags_of(const std::string& words) {
  static const std::map<std::string, VkMemoryPropertyFlags> known{
      {"local", VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT},
      {"visible", VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT},
      {"coherent", VK_MEMORY_PROPERTY_HOST_COHERENT_BIT},
      {"cached", VK_MEMORY_PROPERTY_HOST_CACHED_BIT},
      {"lazy", VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT},
      {"protected", VK_MEMORY_PROPERTY_PROTECTED_BIT},
      {"amd_coherent", VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD}};
  VkMemoryPropertyFlags flags = 0;
  std::istringstream all(words);
  for (std::string word; all >> word;) flags |= known.at(word);
  return flags;
}

VkPhysicalDeviceMemoryProperties memory_of(const json& device) {
  VkPhysicalDeviceMemoryProperties memory{};
  for (const json& heap : device["heaps"]) {
    const VkMemoryHeapFlags local = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT;
    memory.memoryHeaps[memory.memoryHeapCount++] = {heap["MiB"].get<VkDeviceSize>() << 20,
                                                    heap["local"].get<bool>() ? local : 0};
  }
  for (const json& type : device["types"]) {
    memory.memoryTypes[memory.memoryTypeCount++] = {flags_of(type["is"]), type["heap"].get<std::uint32_t>()};
  }
  return memory;
}

}  // namespace

TEST_CASE("buffers get the memory that suits them, on devices of every kind") {
  std::ifstream file(HALFSTEP_SOURCE "/tests/host/memory_of_devices.json");
  const json devices = json::parse(file);
  CHECK(devices.size() >= 9);
  const std::map<std::string, Memory> intents{
      {"device", Memory::device}, {"upload", Memory::upload}, {"readback", Memory::readback}};
  for (const json& device : devices) {
    CAPTURE(device["device"].get<std::string>());
    const VkPhysicalDeviceMemoryProperties memory = memory_of(device);
    for (const auto& [name, intent] : intents) {
      CAPTURE(name);
      const auto best = device["best"][name].get<std::vector<std::uint32_t>>();
      const bool shared = device["shared"];
      CHECK(vk::memory_types(memory, ~0U, intent, shared) == best);
      // What the driver does not allow for a buffer is left out, and nothing else changes.
      const std::vector<std::uint32_t> rest(best.begin() + 1, best.end());
      CHECK(vk::memory_types(memory, ~(1U << best.front()), intent, shared) == rest);
    }
  }
}
