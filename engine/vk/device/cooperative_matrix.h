#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/target.h"
#include "vk/device/loader.h"

/// VK_KHR_cooperative_matrix. Declared here because Vulkan headers before 1.3.255 lack it.
namespace halfstep::vk {

inline constexpr const char* cooperative_matrix_extension = "VK_KHR_cooperative_matrix";

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR.
struct CooperativeMatrixFeatures {
  VkStructureType sType = static_cast<VkStructureType>(1000506000);
  void* pNext = nullptr;
  VkBool32 cooperativeMatrix = VK_FALSE;
  VkBool32 cooperativeMatrixRobustBufferAccess = VK_FALSE;
};

/// VkCooperativeMatrixPropertiesKHR.
struct CooperativeMatrixProperties {
  VkStructureType sType = static_cast<VkStructureType>(1000506001);
  void* pNext = nullptr;
  std::uint32_t MSize = 0;
  std::uint32_t NSize = 0;
  std::uint32_t KSize = 0;
  std::int32_t AType = 0;
  std::int32_t BType = 0;
  std::int32_t CType = 0;
  std::int32_t ResultType = 0;
  VkBool32 saturatingAccumulation = VK_FALSE;
  std::int32_t scope = 0;
};

/// vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR. Some drivers crash in it.
using MatrixQuery = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, CooperativeMatrixProperties*);

/// Whether the library was built with shaders for it; false if glslang was too old.
bool cooperative_shaders_built();

/// VK_KHR_shader_bfloat16. Declared here because Vulkan headers before 1.4.313 lack it.
inline constexpr const char* bfloat16_extension = "VK_KHR_shader_bfloat16";

/// VkPhysicalDeviceShaderBfloat16FeaturesKHR.
struct Bfloat16Features {
  VkStructureType sType = static_cast<VkStructureType>(1000141000);
  void* pNext = nullptr;
  VkBool32 shaderBFloat16Type = VK_FALSE;
  VkBool32 shaderBFloat16DotProduct = VK_FALSE;
  VkBool32 shaderBFloat16CooperativeMatrix = VK_FALSE;
};

/// VK_EXT_shader_float8. Declared here because Vulkan headers before 1.4.318 lack it.
inline constexpr const char* float8_extension = "VK_EXT_shader_float8";

/// VkPhysicalDeviceShaderFloat8FeaturesEXT.
struct Float8Features {
  VkStructureType sType = static_cast<VkStructureType>(1000567000);
  void* pNext = nullptr;
  VkBool32 shaderFloat8 = VK_FALSE;
  VkBool32 shaderFloat8CooperativeMatrix = VK_FALSE;
};

/// The shapes that `device` reports for f16, bf16 and E4M3 within a subgroup, largest first; empty if it reports none.
/// Throws Error where the query fails. Some drivers crash in it.
std::vector<plan::MatrixShape> matrix_shapes(const InstanceTable& instance, VkPhysicalDevice device);

/// Shapes as text, "16x16x16 f16 f32, 16x16x16 float8 f32" (the types of factors and of sums), and back.
std::string text(const std::vector<plan::MatrixShape>& shapes);
std::vector<plan::MatrixShape> matrix_shapes_from(const std::string& text);

}  // namespace halfstep::vk
