#pragma once

#include <vulkan/vulkan.h>

#include <string>
#include <string_view>

namespace halfstep::vk {

/// "VK_ERROR_DEVICE_LOST"; "VkResult -42" for an unknown one.
std::string name(VkResult result);

/// Throws Error that names `call` and the result unless it is VK_SUCCESS.
void check(VkResult result, std::string_view call);

}  // namespace halfstep::vk
