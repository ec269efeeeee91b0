#pragma once

#include <halfstep/precision.h>
#include <halfstep/tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::plan {

/// Values in the order of a shape, laid out as plan::layout says: rounded to nearest where the type is narrow, padded
/// with zeros. What the type does not reach is stored as `overflow` says. `values` holds exactly elements(type.shape)
/// values; the type is floating.
std::vector<std::byte> to_memory(const TensorType& type, std::span<const float> values,
                                 Overflow overflow = Overflow::infinity);
/// The same for u32.
std::vector<std::byte> to_memory(const TensorType& type, std::span<const std::uint32_t> values);

/// The values in a floating tensor's memory, without the padding.
std::vector<float> floats_from_memory(const TensorType& type, std::span<const std::byte> memory);
/// The same for u32.
std::vector<std::uint32_t> words_from_memory(const TensorType& type, std::span<const std::byte> memory);

}  // namespace halfstep::plan
