#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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

/// What a test does to every shader before the driver sees it.
using ShaderPatch = std::function<std::vector<std::uint32_t>(std::string_view name, std::vector<std::uint32_t> words)>;
/// Has every pipeline that is created from here on pass through `patch`; for tests, and not while pipelines are
/// created.
void patch_shaders(ShaderPatch patch);
/// The words of a shader as patch_shaders() has them.
std::vector<std::uint32_t> patched(std::string_view name, std::vector<std::uint32_t> words);

/// The names of all variants that find_shader has been asked for in this process, sorted: what a test run exercised.
std::vector<std::string> used_shaders();

}  // namespace halfstep::vk
