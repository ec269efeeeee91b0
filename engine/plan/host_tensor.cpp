#include "plan/host_tensor.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "plan/layout.h"

namespace halfstep::plan {
namespace {

/// Calls visit(index in the shape's order, index in memory) for every element.
template <typename Visit>
void for_each_element(const TensorType& type, const Visit& visit) {
  const Layout lay = layout(type.shape);
  for (std::int64_t row = 0; row < lay.rows; ++row) {
    for (std::int64_t column = 0; column < lay.columns; ++column) {
      visit(static_cast<std::size_t>(row * lay.columns + column), static_cast<std::size_t>(row * lay.pitch + column));
    }
  }
}

template <typename Element>
void put(std::vector<std::byte>& memory, std::size_t index, Element element) {
  std::memcpy(memory.data() + index * sizeof(Element), &element, sizeof(Element));
}

template <typename Element>
Element take(std::span<const std::byte> memory, std::size_t index) {
  Element element;
  std::memcpy(&element, memory.data() + index * sizeof(Element), sizeof(Element));
  return element;
}

}  // namespace

std::uint16_t half_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
  if (magnitude >= 0x47800000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < 0x38800000U) {  // subnormal: a multiple of 2^-24
    const float units = std::nearbyint(std::bit_cast<float>(magnitude) * 16777216.0F);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(units));
  }
  const std::uint32_t rounded = magnitude + 0xFFFU + (magnitude >> 13 & 1U);
  return static_cast<std::uint16_t>(sign | (rounded - 0x38000000U) >> 13);
}

float float_from_half(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1FU;
  const std::uint32_t fraction = bits & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | fraction << 13);
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) / 16777216.0F;
    return sign == 0 ? magnitude : -magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

std::vector<std::byte> to_memory(const TensorType& type, std::span<const float> values) {
  std::vector<std::byte> memory(byte_size(type));
  for_each_element(type, [&](std::size_t from, std::size_t to) {
    if (type.dtype == DType::f16) {
      put(memory, to, half_from_float(values[from]));
    } else {
      put(memory, to, values[from]);
    }
  });
  return memory;
}

std::vector<std::byte> to_memory(const TensorType& type, std::span<const std::uint32_t> values) {
  std::vector<std::byte> memory(byte_size(type));
  for_each_element(type, [&](std::size_t from, std::size_t to) { put(memory, to, values[from]); });
  return memory;
}

std::vector<float> floats_from_memory(const TensorType& type, std::span<const std::byte> memory) {
  std::vector<float> values(static_cast<std::size_t>(elements(type.shape)));
  for_each_element(type, [&](std::size_t to, std::size_t from) {
    values[to] =
        type.dtype == DType::f16 ? float_from_half(take<std::uint16_t>(memory, from)) : take<float>(memory, from);
  });
  return values;
}

std::vector<std::uint32_t> words_from_memory(const TensorType& type, std::span<const std::byte> memory) {
  std::vector<std::uint32_t> values(static_cast<std::size_t>(elements(type.shape)));
  for_each_element(type, [&](std::size_t to, std::size_t from) { values[to] = take<std::uint32_t>(memory, from); });
  return values;
}

}  // namespace halfstep::plan
