#include "vk/device/validation.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

#include "vk/device/structure.h"

namespace halfstep::vk {
namespace {

struct Log {
  std::mutex mutex;
  std::vector<std::string> messages;
};

/// Never destroyed: a driver may still report messages while the process exits.
Log& log() {
  static Log* const log = new Log;
  return *log;
}

/// What the layer says, with the name of the rule: layers from 1.4 on give it beside the text.
std::string text_of(const VkDebugUtilsMessengerCallbackDataEXT& data) {
  std::string text = data.pMessage;
  if (data.pMessageIdName == nullptr || text.find(data.pMessageIdName) != std::string::npos) return text;
  return fmt::format("{}: {}", data.pMessageIdName, text);
}

VKAPI_ATTR VkBool32 VKAPI_CALL keep(VkDebugUtilsMessageSeverityFlagBitsEXT, VkDebugUtilsMessageTypeFlagsEXT,
                                    const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  const std::lock_guard lock(log().mutex);
  log().messages.push_back(text_of(*data));
  fmt::print(stderr, "{}\n", log().messages.back());
  return VK_FALSE;
}

}  // namespace

std::vector<std::string> validation_messages() {
  const std::lock_guard lock(log().mutex);
  return log().messages;
}

std::vector<std::string> take_validation_messages() {
  const std::lock_guard lock(log().mutex);
  return std::exchange(log().messages, {});
}

VkDebugUtilsMessengerCreateInfoEXT validation_messenger_info() {
  auto info = structure<VkDebugUtilsMessengerCreateInfoEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT);
  info.messageSeverity =
      VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT;
  info.messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  info.pfnUserCallback = keep;
  return info;
}

}  // namespace halfstep::vk
