#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace halfstep::vk {

struct PackedVariant {
  std::string_view name;  ///< file stem and variant values: "relu.f16"
  std::uint32_t words;    ///< of its SPIR-V
};

/// All variants of a shader, as built into the library.
struct ShaderPack {
  std::span<const PackedVariant> variants;
  std::span<const unsigned char> bytes;  ///< their SPIR-V one after the other, in little-endian words, by zstd
};

std::span<const ShaderPack* const> shader_packs();

}  // namespace halfstep::vk
