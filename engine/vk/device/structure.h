#pragma once

#include <vulkan/vulkan.h>

namespace halfstep::vk {

/// A Vulkan structure with its sType set and all other members zero.
template <typename Struct>
Struct structure(VkStructureType type) {
  Struct made{};
  made.sType = type;
  return made;
}

}  // namespace halfstep::vk
