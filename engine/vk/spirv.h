#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// What the engine reads out of a shader's SPIR-V.
struct ShaderFacts {
  bool uses_float16 = false;  ///< it has the type, not merely 16-bit storage of something else
  bool uses_float32 = false;
  bool uses_subgroups = false;    ///< any operation across the invocations of a subgroup
  std::uint32_t entry_point = 0;  ///< id of the compute entry point
  std::uint32_t bindings = 0;     ///< one more than the highest storage-buffer binding it uses
};

ShaderFacts facts(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
