#pragma once

#include <halfstep/language.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep {

namespace vk {
class Context;
struct Access;
}  // namespace vk

/// What there is to know of a device before using it.
struct DeviceInfo {
  std::uint32_t index = 0;         ///< its place in Device::list()
  std::string name;                ///< "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string type;                ///< "discrete", "integrated", "virtual", "cpu" or "other"
  std::string driver;              ///< "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
  std::string api_version;         ///< "1.3.230"
  std::uint64_t memory_bytes = 0;  ///< the device's own memory
  std::string tier;                ///< "native 16-bit storage, f16 arithmetic", "native 16-bit storage" or "packed f16"
  bool usable = false;
  std::string reason;  ///< why it is not usable; empty where it is
};

/// An application's own Vulkan objects, for Device::adopt. Handles are those of Vulkan's types of the same names, as
/// pointers. The instance must have been created for Vulkan 1.1 or later; all of them must outlive the Device.
struct AdoptedDevice {
  void* instance = nullptr;         ///< VkInstance
  void* physical_device = nullptr;  ///< VkPhysicalDevice
  void* device = nullptr;           ///< VkDevice
  void* queue = nullptr;            ///< VkQueue, of a family with compute
  std::uint32_t queue_family = 0;   ///< the queue's family

  /// PFN_vkGetInstanceProcAddr; the machine's loader is used where it is null.
  void (*get_instance_proc_addr)() = nullptr;

  // What the application enabled when it made the device. A feature that is not promised is not used.
  bool storage_buffer_16bit_access = false;  ///< VkPhysicalDevice16BitStorageFeatures::storageBuffer16BitAccess
  bool shader_float16 = false;               ///< VkPhysicalDeviceShaderFloat16Int8Features::shaderFloat16
  bool shader_float_controls = false;        ///< VK_KHR_shader_float_controls
  bool subgroup_size_control = false;        ///< VK_EXT_subgroup_size_control with both of its features
  bool buffer_device_address = false;        ///< VK_KHR_buffer_device_address, its feature and shaderInt64

  /// Called around every submit to the queue, for an application that submits to it from other threads.
  std::function<void()> lock_queue;
  std::function<void()> unlock_queue;
};

/// How the choices that a program leaves open (several kernels for one product) are made.
enum class Tuning : std::uint8_t {
  off,    ///< by rule: the first kernel that gives known results
  on,     ///< the fastest of the first few, measured once and kept from then on in the cache folder
  force,  ///< measured and admitted anew, without a limit of time
};

/// Choices that an application makes in place of its user. What is not set is the environment's: the variable named
/// beside it, or its default. Device::open and adopt throw Error where a text is none that is listed.
struct DeviceSettings {
  std::optional<std::string> tier;  ///< HALFSTEP_TIER: "", "packed" or "native" 16-bit storage
  std::optional<bool> fusion;       ///< HALFSTEP_FUSION, on: elementwise operators are fused with others
  std::optional<Tuning> tuning;     ///< HALFSTEP_TUNE, on
  std::optional<std::string> gemm;  ///< HALFSTEP_GEMM, "": kernels of the matrix product by what their names begin with
  /// HALFSTEP_CACHE, the user's: the folder for pipelines and measurements. An empty path: nothing is kept.
  std::optional<std::filesystem::path> cache_folder;
  /// HALFSTEP_VALIDATION, off: Khronos's validation layer watches the device. Not for an adopted device.
  std::optional<bool> validation;
  /// Whether open() may copy the process (fork) before it loads a driver, to try in the copy what has crashed drivers:
  /// questions about matrix units and their first run. Without, matrix units are not used unless that was found out
  /// before. Never for an adopted device.
  bool may_fork = true;
};

/// The device that training runs on. Copies share it; they may be used from several threads at once.
class HALFSTEP_API Device {
 public:
  /// Opens a device: by its index in list(), or by part of its name in any case. Where `selector` is empty, by the
  /// environment variable HALFSTEP_DEVICE; where that is empty too, the best usable one: discrete before integrated
  /// before virtual before CPU. Throws Error where there is no such device, or it cannot be used.
  /// Copies the process (fork) for a moment, where `settings` allow it. May block for seconds while drivers load.
  static Device open(std::string_view selector = {}, const DeviceSettings& settings = {});

  /// Uses an application's own device and queue. Nothing of the application's is destroyed or reconfigured. Throws
  /// Error where a handle is null or the device cannot be used.
  static Device adopt(const AdoptedDevice& handles, const DeviceSettings& settings = {});

  /// Every device of the machine, usable or not. Throws Error where the machine has no Vulkan at all.
  static std::vector<DeviceInfo> list();

  const DeviceInfo& info() const;

 private:
  friend struct vk::Access;
  explicit Device(std::shared_ptr<vk::Context> context);
  std::shared_ptr<vk::Context> context_;
};

}  // namespace halfstep
