#pragma once

#include <vulkan/vulkan.h>

#include <string>
#include <string_view>

namespace halfstep::vk {

/// "VK_ERROR_DEVICE_LOST"; "VkResult -42" for one not known here.
std::string name(VkResult result);

/// Throws Error naming `call` and the result unless it is VK_SUCCESS.
void check(VkResult result, std::string_view call);

}  // namespace halfstep::vk
