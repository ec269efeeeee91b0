#pragma once

#include <vulkan/vulkan.h>

#include <string>
#include <vector>

namespace halfstep::vk {

/// Every warning and error that the validation layer has given so far in this process, oldest first.
std::vector<std::string> validation_messages();

/// The same, and forgets them.
std::vector<std::string> take_validation_messages();

/// What VkInstanceCreateInfo::pNext needs, for messages to be kept (and printed to stderr as they come).
VkDebugUtilsMessengerCreateInfoEXT validation_messenger_info();

}  // namespace halfstep::vk
