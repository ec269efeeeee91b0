#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace halfstep::vk {

/// One shader variant as built into the library.
struct EmbeddedShader {
  std::string_view name;  ///< file stem and variant values: "relu.f16"
  std::span<const std::uint32_t> words;
};

/// Every variant in the library.
std::span<const EmbeddedShader> embedded_shaders();

/// The variant called `name`; throws Error if the library has none.
const EmbeddedShader& find_shader(std::string_view name);

}  // namespace halfstep::vk
