#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vk/device/context.h"
#include "vk/optimize/specialized.h"
#include "vk/shader/shaders.h"

namespace halfstep::vk {

/// Specialized kernels by key, stored between processes in the cache folder like the pipeline cache. All users of one
/// device at a time share what was read. May be used from several threads.
class SpecializedKernels {
 public:
  explicit SpecializedKernels(const Context& context);

  /// The result of specialized(), computed once. Stays valid as long as this.
  const std::vector<std::uint32_t>& get(const EmbeddedShader& shader, const Constants& constants);
  /// Appends new ones to the file. Never throws: what cannot be stored is computed again.
  void save() noexcept;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace halfstep::vk
