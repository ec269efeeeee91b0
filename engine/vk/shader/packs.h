#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace halfstep::vk {

struct PackedVariant {
  std::string_view name;  ///< file stem and variant values: "relu.f16"
  std::uint32_t words;    ///< of its SPIR-V
};

/// All variants of a shader, as built into the library.
struct ShaderPack {
  std::span<const PackedVariant> variants;
  std::span<const unsigned char> bytes;  ///< their SPIR-V one after the other, in little-endian words, as an .xz stream
};

std::span<const ShaderPack* const> shader_packs();

/// The SPIR-V of all variants, one after the other. Throws an Error where the bytes are damaged.
std::vector<std::uint32_t> expand(const ShaderPack& pack);

}  // namespace halfstep::vk
