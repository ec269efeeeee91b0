#pragma once

#include <vulkan/vulkan.h>

namespace halfstep::vk {

/// VK_VALVE_shader_mixed_float_dot_product. Declared here because Vulkan headers before 2026 lack it.
inline constexpr const char* mixed_dot_extension = "VK_VALVE_shader_mixed_float_dot_product";

/// VkPhysicalDeviceShaderMixedFloatDotProductFeaturesVALVE.
struct MixedDotFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000673000);
  void* pNext = nullptr;
  VkBool32 shaderMixedFloatDotProductFloat16AccFloat32 = VK_FALSE;
  VkBool32 shaderMixedFloatDotProductFloat16AccFloat16 = VK_FALSE;
  VkBool32 shaderMixedFloatDotProductBFloat16Acc = VK_FALSE;
  VkBool32 shaderMixedFloatDotProductFloat8AccFloat32 = VK_FALSE;
};

}  // namespace halfstep::vk
