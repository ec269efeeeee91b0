#pragma once

#include <cstdint>
#include <span>

#include "vk/shader/specialize.h"

namespace halfstep::vk {

/// How much of what a dispatch is given a shader declares.
struct VariableBytes {
  std::uint64_t shared = 0;  ///< of shared memory
  std::uint64_t pushed = 0;  ///< of push constants, to the end of the last
  bool has_empty = false;    ///< whether an array in either has no elements, which drivers crash on
};

/// With these specialization constants. Throws Error if the words are not SPIR-V, or compute the length of an array in
/// shared memory by an operation that is not known here.
VariableBytes variable_bytes(std::span<const std::uint32_t> words, const Constants& constants);

}  // namespace halfstep::vk
