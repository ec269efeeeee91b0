#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vk/device/context.h"
#include "vk/shader/shaders.h"

namespace halfstep::vk {

/// Whether the library was built with SPIRV-Tools' optimizer. Without it drivers specialize all kernels; see
/// apply_workarounds.
bool has_optimizer();

/// Specialization constants by their ids.
using Constants = std::map<std::uint32_t, std::uint32_t>;

/// The shader with its specialization constants fixed and folded: code that cannot be reached, reads and bindings that
/// are not used are removed. Drivers do this too, but some (SwiftShader) only after their optimizer has run, when it is
/// too late to turn an array of registers into registers. If SPIRV-Tools does not support an extension of the shader,
/// as old versions do not support cooperative matrices, the shader is left to the driver. Without an optimizer, it
/// always is.
std::vector<std::uint32_t> specialized(std::span<const std::uint32_t> words, const Constants& constants);

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
