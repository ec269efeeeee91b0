#pragma once

#include <halfstep/guest.h>
#include <halfstep/language.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
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
  /// Of a device that open() was asked for a queue of low priority: "low", or "default: " and why it is not low. Empty
  /// for any other.
  std::string queue_priority;
};

/// How choices that a program leaves open, such as between several GEMM kernels, are made.
enum class Tuning : std::uint8_t {
  off,  ///< by rule: the first kernel that passes its check against known results
  /// On a GPU, the fastest of the first few candidates, measured once and stored in the cache folder. By rule on
  /// software drivers, and where nothing can be stored, so that every run has the same bits; what was stored before is
  /// used all the same.
  on,
  force,  ///< measured and checked again, on software drivers too, without a time limit; replaces what is stored
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
  /// workgroup is never cut. Without timestamps of the queue, or with a clock that stands still within a submit, the
  /// library keeps its first estimate, which assumes a phone's slow GPU. Results do not depend on it. Positive.
  std::optional<double> submit_milliseconds{};
  /// HALFSTEP_LIMITS, default "": lower limits than the device's own, for tests, as "invocations=128,groups=300". See
  /// engine/README.md, "Checking a driver".
  std::optional<std::string> limits{};
  /// HALFSTEP_CACHE, default "halfstep" in the user's cache folder: where pipelines and measurements are stored. It
  /// is created if needed. An empty path stores nothing, as HALFSTEP_CACHE=off does.
  std::optional<std::filesystem::path> cache_folder{};
  /// HALFSTEP_VALIDATION, default off: enables the Khronos validation layer. Not for an adopted device.
  std::optional<bool> validation{};
  /// HALFSTEP_LOW_PRIORITY, default off: open() asks for a queue of low global priority (VK_KHR_global_priority, or the
  /// extension of EXT before it), so that other programs on the device are served first. DeviceInfo::queue_priority
  /// says whether there is one. Not for an adopted device, whose queue is the application's.
  std::optional<bool> low_priority{};
  /// Whether open() may fork the process before it loads a driver, to try calls that have crashed drivers in the child:
  /// queries about matrix units and their first use. The first open() or list() of a process does, for all later ones;
  /// the child ends with the process. Memory that the process had filled by then, and changes or frees later, stays in
  /// use for the child: open a device before loading data. If false, or if the process had loaded Vulkan before, or was
  /// forked from the one that has the child, matrix units are used only if an earlier run has already checked them.
  /// Never done for an adopted device.
  bool may_fork = true;
};

/// The device that training runs on. Copies share it. They may be used from several threads at once. One that was moved
/// from throws Error wherever it is used.
class HALFSTEP_API Device {
 public:
  /// Opens a device by its index in list(), or by a case-insensitive part of its name; one or two digits are an index,
  /// whether there is such a device or not. If `selector` is empty, the environment variable HALFSTEP_DEVICE is used.
  /// If that is empty too, the best usable device is chosen: discrete before integrated before virtual before CPU.
  /// Throws Error if there is no such device or it is not usable. Forks the process briefly if `settings` allow it. May
  /// block for seconds while drivers load.
  static Device open(std::string_view selector = {}, const DeviceSettings& settings = {});

  /// Uses an application's own device and queue. Does not destroy or reconfigure any object of the application. Uses
  /// what AdoptedDevice says is enabled, and neither matrix units nor mixed dot products. Throws Error if a handle is
  /// null, if only one of lock_queue and unlock_queue is set, or if the device is not usable.
  static Device adopt(const AdoptedDevice& handles, const DeviceSettings& settings = {});

  /// Every device of the machine, usable or not. Forks as open() does, for the devices that are opened later. Throws
  /// Error if the machine has no Vulkan at all.
  static std::vector<DeviceInfo> list(const DeviceSettings& settings = {});

  /// What list() tells of it, and queue_priority. Valid as long as a Device shares it.
  const DeviceInfo& info() const;

  /// All work that is submitted to the queue after this, by any thread, waits for these semaphores on the device; the
  /// host does not. What was done before they were signalled is visible to it. Submits an empty batch of its own. A
  /// binary semaphore must have a signal operation that is pending. Throws Error, and submits nothing, if the device is
  /// not an adopted one, a handle is null, or one is a timeline semaphore and AdoptedDevice::timeline_semaphore is not
  /// set; and if the device is lost.
  void wait_for(std::span<const QueueSemaphore> semaphores) const;
  /// Signals these semaphores once all work that was submitted to the queue before this has finished; what that wrote
  /// is visible to whatever waits for them. Otherwise as wait_for().
  void signal(std::span<const QueueSemaphore> semaphores) const;

 private:
  friend struct vk::Access;
  explicit Device(std::shared_ptr<vk::Context> context);
  std::shared_ptr<vk::Context> context_;
};

}  // namespace halfstep
