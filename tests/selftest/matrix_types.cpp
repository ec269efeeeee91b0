#include "selftest/matrix_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>

#include "reference/narrow.h"

namespace halfstep::selftest {
namespace {

struct Facts {
  Component component;
  std::string_view name;
  std::uint32_t bytes;
  bool integer;
  bool has_sign;
  double largest_whole;
};

// f64 and integers of 64 bits have no kernels: no GPU has matrix units for them.
constexpr std::array all{
    Facts{Component::f16, "f16", 2, false, true, 0x1p11},     Facts{Component::f32, "f32", 4, false, true, 0x1p24},
    Facts{Component::bf16, "bf16", 2, false, true, 0x1p8},    Facts{Component::s8, "s8", 1, true, true, 127},
    Facts{Component::u8, "u8", 1, true, false, 255},          Facts{Component::s16, "s16", 2, true, true, 32767},
    Facts{Component::u16, "u16", 2, true, false, 65535},      Facts{Component::s32, "s32", 4, true, true, 0x1p31 - 1},
    Facts{Component::u32, "u32", 4, true, false, 0x1p32 - 1}, Facts{Component::e4m3, "e4m3", 1, false, true, 0x1p4},
    Facts{Component::e5m2, "e5m2", 1, false, true, 0x1p3},
};

const Facts& facts(Component component) {
  return *std::ranges::find(all, component, &Facts::component);
}

/// How many bits of a float of 8 bits are its significand.
int significand_bits(Component component) {
  return component == Component::e4m3 ? 3 : 2;
}

/// What the exponent of 1 is stored as.
int exponent_bias(Component component) {
  return component == Component::e4m3 ? 7 : 15;
}

std::uint64_t float8_bits(Component component, double number) {
  const std::uint64_t sign = std::signbit(number) ? 0x80 : 0;
  if (number == 0) return sign;
  const int width = significand_bits(component);
  const int exponent = std::max(std::ilogb(number), 1 - exponent_bias(component));
  // With the first bit of a normal number, which counts as one of the exponent's.
  const auto significand = static_cast<std::int64_t>(std::ldexp(std::abs(number), width - exponent));
  return sign | static_cast<std::uint64_t>(((exponent + exponent_bias(component) - 1) << width) + significand);
}

double float8_number(Component component, std::uint64_t bits) {
  const int width = significand_bits(component);
  const int exponent = static_cast<int>(bits & 0x7f) >> width;
  const int significand = static_cast<int>(bits) & ((1 << width) - 1);
  const double whole = significand + (exponent > 0 ? 1 << width : 0);
  const double magnitude = std::ldexp(whole, std::max(exponent, 1) - exponent_bias(component) - width);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

}  // namespace

std::string name(Component component) {
  if (component == Component::f64) return "f64";
  if (component == Component::s64) return "s64";
  if (component == Component::u64) return "u64";
  return is_tested(component) ? std::string(facts(component).name)
                              : fmt::format("type {}", static_cast<std::int32_t>(component));
}

bool is_tested(Component component) {
  return std::ranges::find(all, component, &Facts::component) != all.end();
}

bool is_integer(Component component) {
  return facts(component).integer;
}

bool is_signed(Component component) {
  return facts(component).has_sign;
}

bool is_float8(Component component) {
  return component == Component::e4m3 || component == Component::e5m2;
}

std::uint32_t bytes(Component component) {
  return facts(component).bytes;
}

double largest_whole(Component component) {
  return facts(component).largest_whole;
}

std::uint64_t bits(Component component, double number) {
  const std::uint64_t kept = (std::uint64_t{1} << (8 * bytes(component))) - 1;
  if (is_integer(component)) return static_cast<std::uint64_t>(static_cast<std::int64_t>(number)) & kept;
  if (is_float8(component)) return float8_bits(component, number);
  if (component == Component::f16) return reference::half.bits(static_cast<float>(number));
  const auto whole = std::bit_cast<std::uint32_t>(static_cast<float>(number));
  return component == Component::bf16 ? whole >> 16U : whole;
}

double number(Component component, std::uint64_t bits) {
  const std::uint32_t width = 8 * bytes(component);
  if (is_integer(component)) {
    const bool negative = is_signed(component) && (bits >> (width - 1) & 1U) != 0;
    return static_cast<double>(bits) - (negative ? std::exp2(width) : 0.0);
  }
  if (is_float8(component)) return float8_number(component, bits);
  if (component == Component::f16) return reference::half.value(static_cast<std::uint16_t>(bits));
  return std::bit_cast<float>(static_cast<std::uint32_t>(component == Component::bf16 ? bits << 16U : bits));
}

std::string name(const MatrixProduct& p) {
  return fmt::format("{}x{}x{} {} {} {} {}{}{}", p.rows, p.columns, p.k, name(p.a), name(p.b), name(p.c),
                     name(p.result), p.saturating ? " saturating" : "", p.scope == 3 ? "" : " of a workgroup");
}

}  // namespace halfstep::selftest
