#include "vk/device/limits.h"

#include <halfstep/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "vk/device/capabilities.h"

namespace halfstep::vk {
namespace {

/// A limit that can be lowered.
struct Limit {
  std::string_view name;
  std::uint64_t least;  ///< what Vulkan requires, or less where only that lets small tensors exceed it
  std::uint64_t (*own)(const Capabilities&);
  void (*set)(Capabilities&, std::uint64_t);
};

std::uint32_t word(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}

void lower(std::uint32_t& limit, std::uint64_t value) {
  limit = std::min(limit, word(value));
}

/// 0: it varies, and nothing may rely on it.
void set_subgroup_size(Capabilities& c, std::uint64_t size) {
  const bool in_range = c.min_subgroup_size <= size && size <= c.max_subgroup_size && std::has_single_bit(size);
  if (size != 0 && size != c.subgroup_size && !(c.subgroup_size_control && in_range)) {
    fail("device",
         fmt::format("expected the limit subgroup_size to be 0 or a size that {} has ({}, or {} to {}), got {}", c.name,
                     c.subgroup_size, c.min_subgroup_size, c.max_subgroup_size, size));
  }
  c.subgroup_size = word(size);
  c.subgroup_size_control = c.subgroup_size_control && size != 0;
}

constexpr Limit limits_by_name[] = {
    {"buffer_bytes", 4096, [](const Capabilities& c) { return c.max_buffer_bytes; },
     [](Capabilities& c, std::uint64_t value) { c.max_buffer_bytes = value; }},
    {"groups", 64,  // along each axis
     [](const Capabilities& c) -> std::uint64_t {
       return *std::ranges::min_element(c.limits.maxComputeWorkGroupCount);
     },
     [](Capabilities& c, std::uint64_t value) { std::ranges::fill(c.limits.maxComputeWorkGroupCount, word(value)); }},
    {"invocations", 128, [](const Capabilities& c) -> std::uint64_t { return c.limits.maxComputeWorkGroupInvocations; },
     [](Capabilities& c, std::uint64_t value) {
       lower(c.limits.maxComputeWorkGroupInvocations, value);
       for (std::uint32_t& along : c.limits.maxComputeWorkGroupSize) lower(along, value);
     }},
    {"loop_rounds", 100,  // enough for every loop whose length is fixed
     [](const Capabilities& c) -> std::uint64_t { return c.max_loop_rounds; },
     [](Capabilities& c, std::uint64_t value) { c.max_loop_rounds = word(value); }},
    {"memory", 1 << 20,  // of each heap
     [](const Capabilities& c) { return c.memory.memoryHeaps[0].size; },
     [](Capabilities& c, std::uint64_t value) {
       for (VkMemoryHeap& heap : c.memory.memoryHeaps) heap.size = std::min(heap.size, value);
     }},
    {"push_bytes", 128, [](const Capabilities& c) -> std::uint64_t { return c.limits.maxPushConstantsSize; },
     [](Capabilities& c, std::uint64_t value) { c.limits.maxPushConstantsSize = word(value); }},
    {"shared_memory", 16384, [](const Capabilities& c) -> std::uint64_t { return c.limits.maxComputeSharedMemorySize; },
     [](Capabilities& c, std::uint64_t value) { c.limits.maxComputeSharedMemorySize = word(value); }},
    {"storage_buffers", 4,
     [](const Capabilities& c) -> std::uint64_t { return c.limits.maxPerStageDescriptorStorageBuffers; },
     [](Capabilities& c, std::uint64_t value) { c.limits.maxPerStageDescriptorStorageBuffers = word(value); }},
    {"storage_range", 4096, [](const Capabilities& c) -> std::uint64_t { return c.limits.maxStorageBufferRange; },
     [](Capabilities& c, std::uint64_t value) { c.limits.maxStorageBufferRange = word(value); }},
    {"subgroup_size", 0, [](const Capabilities&) { return ~std::uint64_t{0}; }, set_subgroup_size},
    {"texels", 64, [](const Capabilities& c) -> std::uint64_t { return c.limits.maxTexelBufferElements; },
     [](Capabilities& c, std::uint64_t value) { c.limits.maxTexelBufferElements = word(value); }},
};

const Limit& limit_named(std::string_view name) {
  const auto* const found = std::ranges::find(limits_by_name, name, &Limit::name);
  if (found != std::end(limits_by_name)) return *found;
  std::vector<std::string_view> names;
  for (const Limit& limit : limits_by_name) names.push_back(limit.name);
  fail("device", fmt::format("expected limits among {}, got '{}'", fmt::join(names, ", "), name));
}

void add_limit(Limits& limits, const std::string& text) {
  const std::size_t sign = std::min(text.find('='), text.size());
  const Limit& limit = limit_named(text.substr(0, sign));
  const std::string number = text.substr(std::min(sign + 1, text.size()));
  const char* const number_end = number.data() + number.size();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number_end, value);
  if (error != std::errc{} || end != number_end || value < limit.least) {
    fail("device", fmt::format("expected the limit {} to be {} or more, got '{}'", limit.name, limit.least, number));
  }
  if (!limits.emplace(limit.name, value).second) {
    fail("device", fmt::format("expected each limit once, got {} twice", limit.name));
  }
}

}  // namespace

Limits limits_from(const std::string& text) {
  Limits limits;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one, ',');) add_limit(limits, one);
  return limits;
}

void lower_limits(Capabilities& capabilities, const Limits& limits) {
  for (const auto& [name, value] : limits) {
    const Limit& limit = limit_named(name);
    const std::uint64_t own = limit.own(capabilities);
    if (value > own) {
      fail("device", fmt::format("expected the limit {} to be at most {}, which {} has, got {}", name, own,
                                 capabilities.name, value));
    }
    limit.set(capabilities, value);
  }
}

}  // namespace halfstep::vk
