#include "vk/device/result.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <string>

namespace halfstep::vk {
namespace {

struct ResultText {
  VkResult result;
  std::string_view name;
  std::string_view hint;
};

constexpr ResultText result_texts[] = {
    {VK_SUCCESS, "VK_SUCCESS", {}},
    {VK_NOT_READY, "VK_NOT_READY", {}},
    {VK_TIMEOUT, "VK_TIMEOUT", {}},
    {VK_INCOMPLETE, "VK_INCOMPLETE", {}},
    {VK_ERROR_OUT_OF_HOST_MEMORY, "VK_ERROR_OUT_OF_HOST_MEMORY", "close other programs, or make the batch smaller"},
    {VK_ERROR_OUT_OF_DEVICE_MEMORY, "VK_ERROR_OUT_OF_DEVICE_MEMORY",
     "close other programs that use the device, or make the batch smaller"},
    {VK_ERROR_INITIALIZATION_FAILED, "VK_ERROR_INITIALIZATION_FAILED",
     "another program may hold the device, or its driver may be broken; vulkaninfo shows more"},
    {VK_ERROR_DEVICE_LOST, "VK_ERROR_DEVICE_LOST",
     "the driver gave the device up: a step took longer than the system's watchdog allows, or the driver has a fault"},
    {VK_ERROR_MEMORY_MAP_FAILED, "VK_ERROR_MEMORY_MAP_FAILED", {}},
    {VK_ERROR_LAYER_NOT_PRESENT, "VK_ERROR_LAYER_NOT_PRESENT", {}},
    {VK_ERROR_EXTENSION_NOT_PRESENT, "VK_ERROR_EXTENSION_NOT_PRESENT", {}},
    {VK_ERROR_FEATURE_NOT_PRESENT, "VK_ERROR_FEATURE_NOT_PRESENT", {}},
    {VK_ERROR_INCOMPATIBLE_DRIVER, "VK_ERROR_INCOMPATIBLE_DRIVER", {}},
    {VK_ERROR_TOO_MANY_OBJECTS, "VK_ERROR_TOO_MANY_OBJECTS", {}},
    {VK_ERROR_FRAGMENTED_POOL, "VK_ERROR_FRAGMENTED_POOL", {}},
    {VK_ERROR_UNKNOWN, "VK_ERROR_UNKNOWN", {}},
    {VK_ERROR_OUT_OF_POOL_MEMORY, "VK_ERROR_OUT_OF_POOL_MEMORY", {}},
};

ResultText text(VkResult result) {
  for (const ResultText& known : result_texts) {
    if (known.result == result) return known;
  }
  return {result, {}, {}};
}

ErrorCode code_of(VkResult result) {
  switch (result) {
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_POOL_MEMORY:
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_MEMORY_MAP_FAILED:
      return ErrorCode::out_of_memory;
    case VK_ERROR_DEVICE_LOST:
      return ErrorCode::device_lost;
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT:
    case VK_ERROR_FEATURE_NOT_PRESENT:
      return ErrorCode::unsupported;
    default:
      return ErrorCode::system;
  }
}

}  // namespace

std::string name(VkResult result) {
  const ResultText known = text(result);
  return known.name.empty() ? fmt::format("VkResult {}", static_cast<int>(result)) : std::string(known.name);
}

void check(VkResult result, std::string_view call) {
  if (result == VK_SUCCESS) return;
  fail(code_of(result), "vulkan", fmt::format("{} failed with {}", call, name(result)), text(result).hint);
}

}  // namespace halfstep::vk
