#pragma once

#include <cstdint>
#include <span>

#include "vk/shader/specialize.h"

namespace halfstep::vk {

/// Bytes of the shader's shared memory with these specialization constants. Throws Error if the words are not SPIR-V,
/// or compute the length of an array in shared memory by an operation that is not known here.
std::uint64_t shared_bytes(std::span<const std::uint32_t> words, const Constants& constants);

}  // namespace halfstep::vk
