#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/target.h"
#include "vk/device/loader.h"
#include "vk/device/settings.h"

namespace halfstep::vk {

/// What a device promises of floats of one width, beyond what Vulkan requires.
struct FloatControls {
  bool preserves_denormals = false;
  bool rounds_to_nearest_even = false;
  bool preserves_signed_zero_inf_nan = false;
};

/// All that is asked of a physical device, in one place. Only Vulkan 1.1 is required; every bool below is optional and
/// says both that the device has it and that it is enabled once the device is opened.
struct Capabilities {
  std::string name;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t api_version = 0;
  std::uint32_t driver_version = 0;
  VkDriverId driver_id{};   ///< 0 where VK_KHR_driver_properties is missing, as are the two texts
  std::string driver_name;  ///< "llvmpipe"
  std::string driver_info;  ///< "Mesa 22.3.6 (LLVM 15.0.6)"
  std::array<std::uint8_t, VK_UUID_SIZE> device_uuid{};
  std::array<std::uint8_t, VK_UUID_SIZE> driver_uuid{};
  std::array<std::uint8_t, VK_UUID_SIZE> pipeline_cache_uuid{};

  VkPhysicalDeviceLimits limits{};
  std::uint64_t max_buffer_bytes = 0;  ///< of one buffer with memory of its own
  std::uint32_t compute_units = 0;     ///< 0 where the device does not tell
  VkPhysicalDeviceMemoryProperties memory{};

  bool storage_16bit = false;  ///< 16-bit elements in storage buffers
  bool float16_arithmetic = false;
  bool float_controls = false;         ///< VK_KHR_shader_float_controls; the rest of this group is false without
  bool denormals_independent = false;  ///< widths may differ in denormal mode
  bool rounding_independent = false;   ///< widths may differ in rounding mode
  FloatControls float16;
  FloatControls float32;

  std::uint32_t subgroup_size = 0;
  VkSubgroupFeatureFlags subgroup_operations = 0;  ///< in compute shaders; 0 where compute has none
  bool subgroup_size_control = false;              ///< a pipeline can ask for `subgroup_size`, and for full subgroups
  std::uint32_t min_subgroup_size = 0;             ///< this and the next two are 0 where the device does not tell
  std::uint32_t max_subgroup_size = 0;
  std::uint32_t max_subgroups_per_group = 0;

  bool buffer_address = false;      ///< shaders can read buffers by their address, which is counted in 64 bits
  bool timeline_semaphore = false;  ///< the extension is there; it is not needed
  bool cooperative_matrix = false;  ///< VK_KHR_cooperative_matrix, and the memory model and f16 that it takes
  std::vector<plan::MatrixShape> matrix_shapes;  ///< that may be used of it
  bool portability_subset = false;               ///< a layered driver such as MoltenVK: its extension must be enabled

  std::optional<std::uint32_t> queue_family;  ///< the family whose queue is used; one with compute
  std::uint32_t timestamp_bits = 0;           ///< of that family; 0 where it has no timestamps

  std::vector<std::string> unusable;  ///< why the device cannot be used; empty where it can
};

/// Asks the device. Never throws for a poor device: see Capabilities::unusable.
Capabilities query(const InstanceTable& instance, VkPhysicalDevice device);

/// Bits of a timestamp on queues of `family`, 0 where they have none. Throws Error where the device has no such family,
/// or it has no compute.
std::uint32_t timestamp_bits(const InstanceTable& instance, VkPhysicalDevice device, std::uint32_t family);

/// Bytes of the device's own memory.
std::uint64_t memory_bytes(const Capabilities& capabilities);

/// "1.3.230".
std::string version_text(std::uint32_t version);

/// "discrete", "integrated", "virtual", "cpu" or "other".
std::string_view type_name(VkPhysicalDeviceType type);

/// What plans are made for. `settings.tier` "packed" forces the packed tier; "native" makes software drivers use their
/// 16-bit storage, which they would not by themselves, being slower at it.
plan::Target target(const Capabilities& capabilities, const Settings& settings);

/// "native 16-bit storage, f16 arithmetic", "native 16-bit storage" or "packed f16".
std::string tier(const plan::Target& target);

}  // namespace halfstep::vk
