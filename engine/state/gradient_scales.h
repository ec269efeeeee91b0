#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "state/parameters.h"
#include "vk/command/memory.h"
#include "vk/device/context.h"

/// How the scales of gradients (Precision::gradient_scales) lie in their buffer: a table of the scales that gradients
/// are stored times, tensor by tensor; where in the store of gradients each tensor lies; and, block by block of that
/// store, what the update has to know. shaders/step/gradient_scales.glsl has the same.
namespace halfstep::state::gradient_scales {

/// Elements of a block: no two tensors share one.
inline constexpr std::uint64_t block_elements = 128;
/// Bytes of the table, which every device can bind as a uniform buffer: the scale of tensor t is number t + 1.
inline constexpr std::uint64_t table_bytes = 16384;
inline constexpr std::uint64_t most_tensors = table_bytes / 4 - 1;

/// A tensor's place, in blocks.
struct Tensor {
  std::uint32_t first_block = 0;
  std::uint32_t blocks = 0;
};

/// How a block's gradients are stored in the step.
struct Block {
  float unscale = 1;          ///< what undoes its tensor's scale
  std::uint32_t skipped = 0;  ///< whether the tensor is not updated
};

inline constexpr std::uint64_t tensors_offset = table_bytes;
inline constexpr std::uint64_t blocks_offset = tensors_offset + (most_tensors + 1) * sizeof(Tensor);

/// Whether this is one that choose_scales.comp may choose: a power of two from 2^-24 to 2^24.
bool is_scale(float scale);
/// Throws Error where more tensors are trained than the table has room for.
void check_count(const ParameterLayout& layout);
/// The tensors that are trained, in the order of their store.
std::vector<Tensor> tensors(const ParameterLayout& layout);
/// The blocks of the largest of them.
std::int64_t most_blocks(const ParameterLayout& layout);
inline std::uint64_t blocks(const ParameterLayout& layout) {
  return layout.trained_elements() / block_elements;
}
/// Bytes of the buffer.
inline std::uint64_t buffer_bytes(const ParameterLayout& layout) {
  return blocks_offset + blocks(layout) * sizeof(Block);
}

// The buffer as the host reads and writes it, after all submits before.

/// Scales in the order that parameters were written in, which does not depend on how they are grouped; 1 for those that
/// have none.
std::vector<float> read(vk::Context& context, const vk::Buffer& buffer, const ParameterLayout& layout);
/// Takes them in the same order, and says which tensor each is for.
void write(vk::Context& context, const vk::Buffer& buffer, const ParameterLayout& layout,
           std::span<const float> scales);
/// What undoes the scale that the gradient at this element of the store was stored times in the last step.
float unscale(vk::Context& context, const vk::Buffer& buffer, std::uint64_t element);

}  // namespace halfstep::state::gradient_scales
