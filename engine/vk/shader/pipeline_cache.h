#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <vector>

#include "vk/device/context.h"

namespace halfstep::vk {

/// The same data, or none where they are another device's or driver's.
std::vector<std::byte> drivers_own(std::vector<std::byte> data, const Capabilities& capabilities);

/// A VkPipelineCache kept between processes in the cache folder (see process.h; HALFSTEP_CACHE=off keeps none), in a
/// file of its own for each device, driver build and set of shaders.
class PipelineCache {
 public:
  explicit PipelineCache(Context& context);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  VkPipelineCache handle() const { return cache_; }
  /// Writes it, all or nothing, if it has grown. Never throws: a cache that cannot be written is only slower.
  void save() noexcept;

 private:
  std::vector<std::byte> data() const;

  std::shared_ptr<Context> context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::filesystem::path file_;   ///< empty where nothing is kept
  std::size_t known_bytes_ = 0;  ///< of data() when it was as in the file; 0 where there was none
};

}  // namespace halfstep::vk
