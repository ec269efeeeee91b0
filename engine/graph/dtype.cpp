#include "graph/dtype.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace halfstep::graph {
namespace {

std::uint16_t half_of(float value) {
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

float from_half(std::uint16_t bits) {
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

constexpr Narrow half{
    .largest = 65504, .smallest_normal = 0x1p-14, .unit = 0x1p-11, .bits_of = half_of, .value_of = from_half};

std::uint16_t bfloat_of(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16 & 0x8000U) | 0x7FC0U);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}

float from_bfloat(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

constexpr Narrow bfloat{
    .largest = 0x1.FEp127, .smallest_normal = 0x1p-126, .unit = 0x1p-8, .bits_of = bfloat_of, .value_of = from_bfloat};

constexpr std::array type_infos{
    TypeInfo{DType::f32, "f32", "F32", 4, true, nullptr, "f32", false},
    TypeInfo{DType::f16, "f16", "F16", 2, true, &half, "packed", true},
    TypeInfo{DType::bf16, "bf16", "BF16", 2, true, &bfloat, "bf16", false},
    TypeInfo{DType::u32, "u32", "U32", 4, false, nullptr, "u32", false},
};

/// "a, b or c".
std::string names(bool (*wanted)(const TypeInfo&)) {
  std::string text;
  std::string_view last;
  for (const TypeInfo& type : type_infos) {
    if (!wanted(type)) continue;
    if (!last.empty()) text += fmt::format("{}{}", text.empty() ? "" : ", ", last);
    last = type.name;
  }
  return fmt::format("{}{}{}", text, text.empty() ? "" : " or ", last);
}

}  // namespace

std::span<const TypeInfo> all_types() {
  return type_infos;
}

const TypeInfo& info(DType dtype) {
  return *std::ranges::find(type_infos, dtype, &TypeInfo::dtype);
}

const TypeInfo* find_saved(std::string_view saved) {
  const auto found = std::ranges::find(type_infos, saved, &TypeInfo::saved);
  return found == type_infos.end() ? nullptr : &*found;
}

std::uint16_t bits_of(const Narrow& narrow, float value, Overflow overflow) {
  const auto most = static_cast<float>(narrow.largest);
  return narrow.bits_of(overflow == Overflow::saturate ? std::clamp(value, -most, most) : value);
}

float stored(DType dtype, float value, Overflow overflow) {
  const Narrow* narrow = info(dtype).narrow;
  return narrow == nullptr ? value : narrow->value_of(bits_of(*narrow, value, overflow));
}

std::string floating_names() {
  return names([](const TypeInfo& type) { return type.floating; });
}

std::string narrow_names() {
  return names([](const TypeInfo& type) { return type.narrow != nullptr; });
}

}  // namespace halfstep::graph

namespace halfstep {

std::string_view name(DType dtype) {
  return graph::info(dtype).name;
}

std::int64_t bytes(DType dtype) {
  return graph::info(dtype).bytes;
}

bool is_floating(DType dtype) {
  return graph::info(dtype).floating;
}

bool is_narrow(DType dtype) {
  return graph::info(dtype).narrow != nullptr;
}

}  // namespace halfstep
