#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// The shader with what it loads and stores whole of storage buffers of quads, of f32 or of narrow types in two words,
/// as numbers of 64 bits. The shader then needs the feature shaderInt64.
std::vector<std::uint32_t> with_pair_access(std::span<const std::uint32_t> words);

}  // namespace halfstep::vk
