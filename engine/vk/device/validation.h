#pragma once

#include <vulkan/vulkan.h>

#include <string>
#include <vector>

namespace halfstep::vk {

/// Every warning and error of the validation layer so far in this process, oldest first.
std::vector<std::string> validation_messages();

/// Returns the same messages and clears them.
std::vector<std::string> take_validation_messages();

/// For VkInstanceCreateInfo::pNext: stores messages (and prints them to stderr as they arrive).
VkDebugUtilsMessengerCreateInfoEXT validation_messenger_info();

}  // namespace halfstep::vk
