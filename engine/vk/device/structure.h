#pragma once

#include <vulkan/vulkan.h>

namespace halfstep::vk {

/// A Vulkan structure of the given type, zero in all else.
template <typename Struct>
Struct structure(VkStructureType type) {
  Struct made{};
  made.sType = type;
  return made;
}

}  // namespace halfstep::vk
