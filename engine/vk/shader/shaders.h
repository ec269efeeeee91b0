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

/// A modification that a test applies to every shader before the driver gets it.
using ShaderPatch = std::function<std::vector<std::uint32_t>(std::string_view name, std::vector<std::uint32_t> words)>;
/// Applies `patch` to the shaders of all pipelines created after this call; for tests, and not while pipelines are
/// being created.
void patch_shaders(ShaderPatch patch);
/// The words of a shader after the patch of patch_shaders().
std::vector<std::uint32_t> patched(std::string_view name, std::vector<std::uint32_t> words);

/// The names of all variants requested from find_shader in this process, sorted: the coverage of a test run.
std::vector<std::string> used_shaders();

}  // namespace halfstep::vk
