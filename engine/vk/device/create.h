#pragma once

#include <vulkan/vulkan.h>

#include <string_view>

#include "vk/device/context.h"
#include "vk/device/result.h"

namespace halfstep::vk {

/// What `function`, called `name`, makes of `info`. Throws Error as check does. What a failed call leaves as its
/// handle, which may be anything, is dropped.
template <typename Info, typename Handle>
Handle create(const Context& context,
              VkResult(VKAPI_PTR* function)(VkDevice, const Info*, const VkAllocationCallbacks*, Handle*),
              const Info& info, std::string_view name) {
  Handle handle = VK_NULL_HANDLE;
  check(function(context.device(), &info, context.allocator(), &handle), name);
  return handle;
}

}  // namespace halfstep::vk
