#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <vector>

#include "vk/device/context.h"

namespace halfstep::vk {

/// Returns `data`, or nothing if it belongs to another device or driver.
std::vector<std::byte> drivers_own(std::vector<std::byte> data, const Capabilities& capabilities);

/// A VkPipelineCache that is stored between processes in the cache folder (see process.h; HALFSTEP_CACHE=off disables
/// it), in one file per device, driver build and set of shaders. Must not outlive its context.
class PipelineCache {
 public:
  explicit PipelineCache(Context& context);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  VkPipelineCache handle() const { return cache_; }
  /// Writes it atomically if it has grown. Never throws: without the file the next process is only slower. May be
  /// called from several threads.
  void save() noexcept;

 private:
  std::vector<std::byte> data() const;

  Context& context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::mutex mutex_;             ///< of what follows
  std::filesystem::path file_;   ///< empty if nothing is stored
  std::size_t known_bytes_ = 0;  ///< size of data() when it matched the file; 0 if there was none
};

}  // namespace halfstep::vk
