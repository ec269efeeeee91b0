#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "plan/dispatch.h"
#include "vk/device/context.h"
#include "vk/shader/pipeline_cache.h"
#include "vk/shader/specialize.h"
#include "vk/shader/spirv.h"

namespace halfstep::vk {

/// What a set binds.
struct Slots {
  std::uint32_t bindings = 0;
  std::uint32_t texels = 0;  ///< bit i: binding i is a texel buffer; else a storage buffer
  bool uniforms = false;     ///< all are uniform buffers

  auto operator<=>(const Slots&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 of < 0
};

/// A compute pipeline with `bindings` buffers in set 0 and `push_bytes` of push constants. One that stores f16 has set
/// 1 too: the StepState that noise is keyed on; the number of the tensor's stream, with the places of the scales that
/// results are stored times; and the table of these.
struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout storing_layout = VK_NULL_HANDLE;  ///< null where there is no set 1
  std::uint32_t bindings = 0;
  std::uint32_t push_bytes = 0;
  std::string_view shader;  ///< the variant's name
};

/// Makes each pipeline once, and keeps what was specialized and what the driver compiled on disk for the next process.
class Pipelines {
 public:
  explicit Pipelines(Context& context);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  /// The pipeline that `dispatch` needs; it lives as long as this object. Throws Error naming the dispatch's label, and
  /// the limit where one is passed.
  const Pipeline& get(const plan::Dispatch& dispatch);

  /// Keeps on disk what the driver has compiled so far, without waiting for the destructor to.
  void save() noexcept {
    kernels_.save();
    cache_.save();
  }

 private:
  /// The variant, its SPIR-V where the application brought it, its constants, how it stores f16, push bytes and
  /// bindings.
  using Key = std::tuple<std::string, std::vector<std::uint32_t>, std::vector<std::uint32_t>, std::array<bool, 3>,
                         std::uint32_t, std::uint32_t>;
  using LayoutKey = std::tuple<Slots, std::uint32_t, bool>;  ///< push bytes, and whether there is set 1

  VkDescriptorSetLayout set_layout(Slots slots);
  VkPipelineLayout layout(Slots slots, std::uint32_t push_bytes, bool storing);
  std::vector<std::uint32_t> words_of(const plan::Dispatch& dispatch, const EmbeddedShader& shader);
  VkPipeline compile(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words, const ShaderFacts& facts,
                     VkPipelineLayout layout);

  std::shared_ptr<Context> context_;
  PipelineCache cache_;
  SpecializedKernels kernels_;
  std::map<Key, Pipeline> pipelines_;
  std::map<Slots, VkDescriptorSetLayout> set_layouts_;
  std::map<LayoutKey, VkPipelineLayout> layouts_;
};

}  // namespace halfstep::vk
