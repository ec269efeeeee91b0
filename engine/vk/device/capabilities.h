#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/target.h"
#include "vk/device/loader.h"
#include "vk/device/settings.h"

namespace halfstep::vk {

/// What a device guarantees for floats of one width, beyond what Vulkan requires.
struct FloatControls {
  bool preserves_denormals = false;
  bool rounds_to_nearest_even = false;
  bool preserves_signed_zero_inf_nan = false;
};

/// All properties of a physical device that the engine queries, in one place. Only Vulkan 1.1 is required. Every bool
/// below is optional; true means that the device supports it and that it is enabled once the device is opened.
struct Capabilities {
  std::string name;
  VkPhysicalDeviceType type = VK_PHYSICAL_DEVICE_TYPE_OTHER;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::uint32_t api_version = 0;
  std::uint32_t driver_version = 0;
  VkDriverId driver_id{};   ///< 0 if VK_KHR_driver_properties is missing; the two texts are then empty
  std::string driver_name;  ///< "llvmpipe"
  std::string driver_info;  ///< "Mesa 22.3.6 (LLVM 15.0.6)"
  std::array<std::uint8_t, VK_UUID_SIZE> device_uuid{};
  std::array<std::uint8_t, VK_UUID_SIZE> driver_uuid{};
  std::array<std::uint8_t, VK_UUID_SIZE> pipeline_cache_uuid{};

  VkPhysicalDeviceLimits limits{};
  std::uint64_t max_buffer_bytes = 0;  ///< of one buffer with its own memory
  /// Loop rounds after which the driver ends the loops of an invocation, regardless of their conditions.
  std::uint32_t max_loop_rounds = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t compute_units = 0;  ///< 0 if the device does not report it
  VkPhysicalDeviceMemoryProperties memory{};

  bool storage_16bit = false;  ///< 16-bit elements in storage buffers
  bool float16_arithmetic = false;
  bool unpacks_halves = true;          ///< unpackHalf2x16() works
  bool float_controls = false;         ///< VK_KHR_shader_float_controls; without it the rest of this group is false
  bool denormals_independent = false;  ///< widths may differ in denormal mode
  bool rounding_independent = false;   ///< widths may differ in rounding mode
  FloatControls float16;
  FloatControls float32;

  std::uint32_t subgroup_size = 0;                 ///< the usual one, or the one to request; 0 if it varies
  VkSubgroupFeatureFlags subgroup_operations = 0;  ///< in compute shaders; 0 if compute has none
  bool subgroup_size_control = false;              ///< a pipeline can request `subgroup_size`, and full subgroups
  std::uint32_t min_subgroup_size = 0;             ///< this and the next two are 0 if the device does not report them
  std::uint32_t max_subgroup_size = 0;
  std::uint32_t max_subgroups_per_group = 0;

  bool buffer_address = false;      ///< shaders can read buffers by their 64-bit device address
  bool timeline_semaphore = false;  ///< the extension is supported; it is not required
  bool cooperative_matrix = false;  ///< VK_KHR_cooperative_matrix, with the memory model and f16 that it requires
  bool bfloat16_matrices = false;   ///< of bf16 too
  bool float8_matrices = false;     ///< of E4M3 too
  bool mixed_dots = false;          ///< VK_VALVE_shader_mixed_float_dot_product, of f16 with sums in f32
  std::vector<plan::MatrixShape> matrix_shapes;  ///< of matrix units, that may be used
  bool pipeline_executables = false;             ///< the driver can tell about the code that it compiles
  bool memory_budget = false;                    ///< the driver can tell what other programs leave of each heap
  const char* global_priority = nullptr;         ///< the extension for queues of low priority; null: there is none
  bool portability_subset = false;               ///< a layered driver such as MoltenVK: its extension must be enabled

  std::optional<std::uint32_t> queue_family;  ///< the family of the queue that is used; supports compute
  std::uint32_t timestamp_bits = 0;           ///< of that family; 0 if it has no timestamps

  std::vector<std::string> unusable;  ///< why the device cannot be used; empty if it can
};

/// Queries the device. Never throws for an insufficient device: see Capabilities::unusable.
Capabilities query(const InstanceTable& instance, VkPhysicalDevice device);

/// Bits of a timestamp on queues of `family`, 0 if they have none. Throws Error if the device has no such family, or
/// the family does not support compute.
std::uint32_t timestamp_bits(const InstanceTable& instance, VkPhysicalDevice device, std::uint32_t family);

/// Size of the device's own memory.
std::uint64_t memory_bytes(const Capabilities& capabilities);

/// Whether host and device use the same memory.
bool shares_memory(const Capabilities& capabilities);

/// Whether shaders use a heap: those of the device's own memory, and where it shares the host's, all.
bool is_usable(const Capabilities& capabilities, std::uint32_t heap);

/// "1.3.230".
std::string version_text(std::uint32_t version);

/// "discrete", "integrated", "virtual", "cpu" or "other".
std::string_view type_name(VkPhysicalDeviceType type);

/// The target that plans are made for. `settings.tier` "packed" forces the packed tier. "native" makes software drivers
/// use their 16-bit storage; by default they do not, because it is slower.
plan::Target target(const Capabilities& capabilities, const Settings& settings);

/// "native 16-bit storage, f16 arithmetic", "native 16-bit storage" or "packed f16".
std::string tier(const plan::Target& target);

}  // namespace halfstep::vk
