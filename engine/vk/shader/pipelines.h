#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
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

/// The bindings of a descriptor set.
struct SetBindings {
  std::uint32_t bindings = 0;
  std::uint32_t texels = 0;  ///< bit i: binding i is a texel buffer; else a storage buffer
  bool uniforms = false;     ///< all bindings are uniform buffers

  auto operator<=>(const SetBindings&) const =
      default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 means the 0 of < 0
};

/// A compute pipeline with `bindings` buffers in set 0, windows (plan/windows.h) included, and `push_bytes` of push
/// constants. A pipeline that stores f16 also has set 1 with three bindings: the StepState that keys the noise; the
/// number of the tensor's noise stream, with the indices of the scales of its results; and the table of scales.
struct Pipeline {
  VkPipeline handle = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkDescriptorSetLayout storing_layout = VK_NULL_HANDLE;  ///< null if there is no set 1
  std::uint32_t bindings = 0;
  std::uint32_t texels = 0;  ///< bit i: binding i is a texel buffer
  std::uint32_t push_bytes = 0;
  std::uint32_t first_group_at = 0;  ///< where the push constants have the first workgroup's number; 0: nowhere
  std::string_view shader;           ///< the variant's name
};

/// Creates each pipeline once, and stores specialized shaders and the driver's compiled code on disk for the next
/// process.
class Pipelines {
 public:
  /// Whether the driver keeps what it knows of the code it compiles; see executables.h. It then compiles anew what it
  /// could read from a cache.
  enum class Capture : bool { no, yes };

  explicit Pipelines(Context& context, Capture capture = Capture::no);
  ~Pipelines();
  Pipelines(const Pipelines&) = delete;
  Pipelines& operator=(const Pipelines&) = delete;

  /// Where the workgroups of a dispatch may start: always at the first, or at any; see first_group.h.
  enum class Start : bool { first, any };

  /// The pipeline for `dispatch`; it lives as long as this object. Throws Error that names the dispatch's label, and
  /// the limit if one is exceeded.
  const Pipeline& get(const plan::Dispatch& dispatch, Start start = Start::first);

  /// Calls `cancel` before each pipeline that is compiled from now on, unless it is empty; where it returns true, get()
  /// throws Error with ErrorCode::cancelled.
  void ask(std::function<bool()> cancel) { cancel_ = std::move(cancel); }

  /// Stores what the driver has compiled so far, without waiting for the destructor.
  void save() noexcept {
    kernels_.save();
    cache_.save();
  }

 private:
  /// The variant, its SPIR-V if the application provided it, its constants, how it stores f16, whether it is
  /// reproducible or has matrices of bf16, push bytes, which operands may be texel buffers, bindings, windows, and
  /// where it may start.
  using Key = std::tuple<std::string, std::vector<std::uint32_t>, std::vector<std::uint32_t>, std::array<bool, 5>,
                         std::uint32_t, std::uint32_t, std::uint32_t, plan::Windows, Start>;
  using LayoutKey = std::tuple<SetBindings, std::uint32_t, bool>;  ///< push bytes, and whether there is set 1

  VkDescriptorSetLayout set_layout(SetBindings set);
  VkPipelineLayout layout(SetBindings set, std::uint32_t push_bytes, bool storing);
  std::vector<std::uint32_t> words_of(const plan::Dispatch& dispatch, const EmbeddedShader& shader,
                                      const Constants& constants);
  VkPipeline compile(const plan::Dispatch& dispatch, std::span<const std::uint32_t> words, const ShaderFacts& facts,
                     const Constants& constants, const Pipeline& made);

  std::shared_ptr<Context> context_;
  PipelineCache cache_;
  SpecializedKernels kernels_;
  VkPipelineCreateFlags flags_ = 0;
  std::function<bool()> cancel_{};
  std::map<Key, Pipeline> pipelines_;
  std::map<SetBindings, VkDescriptorSetLayout> set_layouts_;
  std::map<LayoutKey, VkPipelineLayout> layouts_;
};

}  // namespace halfstep::vk
