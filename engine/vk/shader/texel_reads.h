#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::vk {

/// The bindings of set 0, a bit each of the first 32, that are storage buffers of quads of f32 from which the shader
/// only loads whole quads.
std::uint32_t quad_reads(std::span<const std::uint32_t> words);

/// The shader with these of its quad_reads() as texel buffers, a texel for each quad.
std::vector<std::uint32_t> with_texel_reads(std::span<const std::uint32_t> words, std::uint32_t bindings);

}  // namespace halfstep::vk
