#pragma once

#include <volk.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "vk/context.h"

namespace halfstep::vk {

/// The folder for compiled pipelines: HALFSTEP_CACHE, or "halfstep" in the user's cache folder; empty where
/// HALFSTEP_CACHE=off or there is no such folder.
std::filesystem::path cache_folder();

/// Whether `bytes` begin with a pipeline cache header that is this device's.
bool is_cache_of(const Capabilities& capabilities, const std::vector<std::byte>& bytes);

/// A VkPipelineCache kept on disk between processes, in a file of its own for each driver build and set of shaders.
class PipelineCache {
 public:
  explicit PipelineCache(Context& context);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  VkPipelineCache handle() const { return cache_; }
  /// Writes it to a temporary file and renames that, where its size has changed. Never throws.
  void save() noexcept;

 private:
  std::vector<std::byte> data() const;

  std::shared_ptr<Context> context_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;
  std::filesystem::path file_;  ///< empty where nothing is kept
  std::size_t saved_bytes_ = 0;
};

}  // namespace halfstep::vk
