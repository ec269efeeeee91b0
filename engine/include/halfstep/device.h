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

/// What is known about a device before it is opened.
struct DeviceInfo {
  std::uint32_t index = 0;         ///< its index in Device::list()
  std::string name;                ///< "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string type;                ///< "discrete", "integrated", "virtual", "cpu" or "other"
  std::string driver;              ///< "llvmpipe Mesa 22.3.6 (LLVM 15.0.6)"
  std::string api_version;         ///< "1.3.230"
  std::uint64_t memory_bytes = 0;  ///< the device's own memory
  std::string tier;                ///< "native 16-bit storage, f16 arithmetic", "native 16-bit storage" or "packed f16"
  bool usable = false;
  std::string reason;  ///< why it is not usable; empty if it is
};

/// An application's own Vulkan objects, for Device::adopt. Each handle is the Vulkan handle of that type, as a pointer.
/// The instance must have been created for Vulkan 1.1 or later. All objects must outlive the Device.
struct AdoptedDevice {
  void* instance = nullptr;         ///< VkInstance
  void* physical_device = nullptr;  ///< VkPhysicalDevice
  void* device = nullptr;           ///< VkDevice
  void* queue = nullptr;            ///< VkQueue, from a queue family with compute
  std::uint32_t queue_family = 0;   ///< the index of the queue's family

  /// PFN_vkGetInstanceProcAddr; if null, the system's Vulkan loader is used.
  void (*get_instance_proc_addr)() = nullptr;

  // What the application enabled when it created the device. Features that are not set here are not used.
  bool storage_buffer_16bit_access = false;  ///< VkPhysicalDevice16BitStorageFeatures::storageBuffer16BitAccess
  bool shader_float16 = false;               ///< VkPhysicalDeviceShaderFloat16Int8Features::shaderFloat16
  bool shader_float_controls = false;        ///< VK_KHR_shader_float_controls
  bool subgroup_size_control = false;        ///< VK_EXT_subgroup_size_control with both of its features
  bool buffer_device_address = false;        ///< VK_KHR_buffer_device_address, its feature and shaderInt64

  /// Called before and after every submit to the queue, for an application that submits to it from other threads.
  std::function<void()> lock_queue;
  std::function<void()> unlock_queue;
};

/// How choices that a program leaves open, such as between several GEMM kernels, are made.
enum class Tuning : std::uint8_t {
  off,    ///< by rule: the first kernel that passes its check against known results
  on,     ///< the fastest of the first few candidates, measured once and stored in the cache folder
  force,  ///< measured and checked again, without a time limit
};

/// Settings that an application makes in place of its user. A member that is not set falls back to the environment
/// variable named beside it, or to that variable's default. Device::open and adopt throw Error for a text that is not
/// listed.
struct DeviceSettings {
  std::optional<std::string> tier{};  ///< HALFSTEP_TIER: "", "packed" or "native" 16-bit storage
  std::optional<bool> fusion{};       ///< HALFSTEP_FUSION, default on: elementwise operators are fused with others
  std::optional<Tuning> tuning{};     ///< HALFSTEP_TUNE, default on
  std::optional<std::string> gemm{};  ///< HALFSTEP_GEMM, default "": a prefix that GEMM kernels' names must have
  /// HALFSTEP_SUBMIT_MS, default 100: the milliseconds that one submit may take, by prediction and then by measurement.
  /// Longer steps are cut into several submits, with no wait between them: Windows and phones reset a device that is
  /// busy with one for a second or two, and a screen that the device also draws stands still meanwhile. A single
  /// workgroup is never cut, and on queues without timestamps the prediction, for a slow phone, stays. Results do not
  /// depend on it. Positive.
  std::optional<double> submit_milliseconds{};
  /// HALFSTEP_LIMITS, default "": lower limits than the device's own, for tests, as "invocations=128,groups=300". See
  /// engine/README.md, "Checking a driver".
  std::optional<std::string> limits{};
  /// HALFSTEP_CACHE, default the user's cache folder: where pipelines and measurements are stored. An empty path stores
  /// nothing.
  std::optional<std::filesystem::path> cache_folder{};
  /// HALFSTEP_VALIDATION, default off: enables the Khronos validation layer. Not for an adopted device.
  std::optional<bool> validation{};
  /// Whether open() may fork the process before it loads a driver, to try calls that have crashed drivers in the child:
  /// queries about matrix units and their first use. If false, matrix units are used only if an earlier run has already
  /// checked them. Never done for an adopted device.
  bool may_fork = true;
};

/// The device that training runs on. Copies share it. They may be used from several threads at once.
class HALFSTEP_API Device {
 public:
  /// Opens a device by its index in list(), or by a case-insensitive part of its name. If `selector` is empty, the
  /// environment variable HALFSTEP_DEVICE is used. If that is empty too, the best usable device is chosen: discrete
  /// before integrated before virtual before CPU. Throws Error if there is no such device or it is not usable. Forks
  /// the process briefly if `settings` allow it. May block for seconds while drivers load.
  static Device open(std::string_view selector = {}, const DeviceSettings& settings = {});

  /// Uses an application's own device and queue. Does not destroy or reconfigure any object of the application. Throws
  /// Error if a handle is null or the device is not usable.
  static Device adopt(const AdoptedDevice& handles, const DeviceSettings& settings = {});

  /// Every device of the machine, usable or not. Throws Error if the machine has no Vulkan at all.
  static std::vector<DeviceInfo> list();

  const DeviceInfo& info() const;

 private:
  friend struct vk::Access;
  explicit Device(std::shared_ptr<vk::Context> context);
  std::shared_ptr<vk::Context> context_;
};

}  // namespace halfstep
