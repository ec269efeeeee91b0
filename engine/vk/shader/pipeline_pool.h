#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "plan/windows.h"
#include "vk/device/context.h"
#include "vk/shader/pipeline_cache.h"
#include "vk/shader/specialize.h"

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
  std::string_view shader{};         ///< the variant's name
};

/// What tells a pipeline from all others on a device.
struct PipelineKey {
  std::string shader{};                    ///< the variant's name
  std::vector<std::uint32_t> spirv{};      ///< if the application provided it
  std::vector<std::uint32_t> constants{};  ///< of its specialization
  std::array<bool, 5> how{};               ///< it stores f16; it is reproducible, who rounds
  plan::MatrixType matrices{};
  std::uint32_t push_bytes = 0;
  std::vector<std::byte> push{};  ///< that it was compiled for; empty: for any
  SetBindings set{};
  std::uint32_t may_be_texels = 0;  ///< bit i: binding i is a texel buffer if the kernel can read it so
  plan::Windows windows{};
  bool any_start = false;     ///< whether its workgroups may start at any
  std::uint64_t patches = 0;  ///< shader_patches() when it was made
  std::int64_t rounds = 0;    ///< that it was patched for

  auto operator<=>(const PipelineKey&) const = default;
};

/// The pipelines of a device, shared by all who work on it: each is compiled once, and what the driver compiled and the
/// specializer made is stored on disk for the next process. Of those that nobody uses any more, the last `most_unused`
/// are kept for whoever comes next. May be used from several threads.
class PipelinePool {
 public:
  static constexpr std::size_t most_unused = 1024;

  /// Must not outlive `context`, whose own one is Context::pipeline_pool().
  explicit PipelinePool(Context& context);
  ~PipelinePool();
  PipelinePool(const PipelinePool&) = delete;
  PipelinePool& operator=(const PipelinePool&) = delete;

  /// Null if there is none. A pipeline is in use as long as anyone has what this or add() returned.
  std::shared_ptr<const Pipeline> find(const PipelineKey& key);
  /// Takes over `made`, all but its layouts, which are this pool's. Where another thread was sooner, returns its
  /// pipeline, and destroys this one.
  std::shared_ptr<const Pipeline> add(const PipelineKey& key, const Pipeline& made);

  /// They live as long as the pool. Throw Error where there is no memory.
  VkDescriptorSetLayout set_layout(SetBindings set);
  VkPipelineLayout layout(SetBindings set, std::uint32_t push_bytes, bool storing);

  VkPipelineCache cache() const { return cache_.handle(); }
  SpecializedKernels& kernels() { return kernels_; }
  /// Stores what is new on disk.
  void save() noexcept;

 private:
  struct Entry {
    std::shared_ptr<Pipeline> pipeline;
    std::uint64_t found;  ///< the number of the last find() or add() that returned it
  };
  using LayoutKey = std::tuple<SetBindings, std::uint32_t, bool>;  ///< push bytes, and whether there is set 1

  VkDescriptorSetLayout known_set_layout(SetBindings set);
  void drop_unused();
  void destroy(const Pipeline& pipeline);

  Context& context_;
  PipelineCache cache_;
  SpecializedKernels kernels_;
  std::mutex mutex_;  ///< of what follows
  std::uint64_t finds_ = 0;
  bool has_new_ = false;  ///< pipelines since the last save()
  std::map<PipelineKey, Entry> pipelines_;
  std::map<SetBindings, VkDescriptorSetLayout> set_layouts_;
  std::map<LayoutKey, VkPipelineLayout> layouts_;
};

/// The bindings of set 1.
inline constexpr SetBindings storing_bindings{.bindings = 3, .uniforms = true};

}  // namespace halfstep::vk
