#pragma once

#include <volk.h>

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "vk/context.h"

namespace halfstep::vk {

/// A cache file's contents: the driver's data behind a header of ours, which shows damage.
std::vector<std::byte> seal_cache(std::span<const std::byte> data);

/// The driver's data out of a file's contents; empty where they are damaged, or another device's or driver's.
std::vector<std::byte> unseal_cache(std::span<const std::byte> contents, const Capabilities& capabilities);

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
