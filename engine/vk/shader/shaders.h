#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep::vk {

/// One shader variant of the library.
struct EmbeddedShader {
  std::string_view name;  ///< file stem and variant values: "relu.f16"
  std::span<const std::uint32_t> words;
  bool bf16 = false;  ///< specialized for bf16: IS_BF16 of shaders/storage/words.glsl
};

/// The names of all variants in the library.
std::span<const std::string_view> shader_names();

/// Whether the library has the shader of that file stem, such as "gemm_uniform". See HALFSTEP_WITHOUT in
/// shaders/CMakeLists.txt.
bool has_shader(std::string_view stem);

/// A checksum of all of them.
std::uint64_t shaders_checksum();

/// The variant called `name`; throws Error if the library has none. It is expanded when it is first asked for, together
/// with all variants of its shader; it is kept, and of the others those of one shader at a time.
const EmbeddedShader& find_shader(std::string_view name);

/// A modification that a test applies to every shader before the driver gets it.
using ShaderPatch = std::function<std::vector<std::uint32_t>(std::string_view name, std::vector<std::uint32_t> words)>;
/// Applies `patch` to the shaders of all pipelines created after this call; for tests, and not while pipelines are
/// being created.
void patch_shaders(ShaderPatch patch);
/// How often that was called: pipelines that were made before are not those of now.
std::uint64_t shader_patches();
/// A modification by the loop rounds that a dispatch counts for an invocation (plan::Dispatch::rounds).
using RoundsPatch = std::function<std::vector<std::uint32_t>(std::vector<std::uint32_t> words, std::int64_t rounds)>;
/// Applies `patch` too, after that of patch_shaders(); dispatches that count other rounds then have other pipelines. To
/// be called before there is any pipeline.
void patch_rounds(RoundsPatch patch);
bool patches_rounds();
/// The words of a shader after these patches.
std::vector<std::uint32_t> patched(std::string_view name, std::vector<std::uint32_t> words, std::int64_t rounds);

/// The names of all variants requested from find_shader in this process, sorted: the coverage of a test run.
std::vector<std::string> used_shaders();

}  // namespace halfstep::vk
