#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vk/device/context.h"
#include "vk/shader/shaders.h"

namespace halfstep::vk {

/// Specialization constants by their numbers.
using Constants = std::map<std::uint32_t, std::uint32_t>;

/// A shader with its specialization constants fixed and all that follows from them worked out: what no invocation can
/// reach, read or bind is gone. Drivers do this too, but some (SwiftShader) only after they have optimised, when it is
/// too late for an array of registers to become registers. A shader that SPIRV-Tools does not know an extension of, as
/// an older one does not know cooperative matrices, is left to the driver.
std::vector<std::uint32_t> specialized(std::span<const std::uint32_t> words, const Constants& constants);

/// Kernels by key, kept between processes in the cache folder as the pipeline cache is.
class SpecializedKernels {
 public:
  explicit SpecializedKernels(const Context& context);

  /// specialized(), done once.
  const std::vector<std::uint32_t>& get(const EmbeddedShader& shader, const Constants& constants);
  /// Writes them, all or nothing, if there are new ones. Never throws: what cannot be kept is made again.
  void save() noexcept;

 private:
  std::filesystem::path file_;  ///< empty where nothing is kept
  std::map<std::string, std::vector<std::uint32_t>> kernels_;
  bool changed_ = false;
};

}  // namespace halfstep::vk
