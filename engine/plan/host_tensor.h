#pragma once

#include <halfstep/tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::plan {

/// The f16 nearest to `value`, ties to even, as bits; the same as shaders/common/rounding.glsl gives.
std::uint16_t half_from_float(float value);
/// The value of an f16 given as bits; exact.
float float_from_half(std::uint16_t bits);

/// Values in the order of a shape, laid out as plan::layout says: rounded to f16 where the type is, padded with zeros.
/// `values` holds exactly elements(type.shape) values; the type is floating.
std::vector<std::byte> to_memory(const TensorType& type, std::span<const float> values);
/// The same for u32.
std::vector<std::byte> to_memory(const TensorType& type, std::span<const std::uint32_t> values);

/// The values in a floating tensor's memory, without the padding.
std::vector<float> floats_from_memory(const TensorType& type, std::span<const std::byte> memory);
/// The same for u32.
std::vector<std::uint32_t> words_from_memory(const TensorType& type, std::span<const std::byte> memory);

}  // namespace halfstep::plan
