#pragma once

#include <halfstep/tensor.h>

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::vk {

/// A range of a buffer, bound as a storage buffer, or as a texel buffer if a texel format is given.
struct BufferRange {
  VkBuffer buffer = VK_NULL_HANDLE;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::string_view name;  ///< of the tensor, for errors
  VkFormat texels = VK_FORMAT_UNDEFINED;
};

/// The format of a texel that is a quad of a floating type: of its words, where it is narrow.
VkFormat quad_format(DType dtype);

/// Descriptor sets, each written once; all are freed together.
class DescriptorSets {
 public:
  explicit DescriptorSets(Context& context);
  ~DescriptorSets();
  DescriptorSets(const DescriptorSets&) = delete;
  DescriptorSets& operator=(const DescriptorSets&) = delete;

  /// A set with range i at binding i. Throws Error that names the range if it is larger than the device can bind or
  /// misaligned, or if the number of ranges is not the pipeline's.
  VkDescriptorSet make(const Pipeline& pipeline, std::span<const BufferRange> ranges);
  /// Set 1 of a pipeline that stores f16, uniform buffers: see Pipeline.
  VkDescriptorSet make_storing(const Pipeline& pipeline, const std::array<BufferRange, 3>& ranges);

 private:
  void write(VkDescriptorSet set, std::uint32_t binding, VkDescriptorType type, const BufferRange& range);
  VkBufferView view(const BufferRange& range);
  VkDescriptorSet allocate(VkDescriptorSetLayout layout, std::uint32_t bindings);
  void add_pool(std::uint32_t bindings);

  std::shared_ptr<Context> context_;
  std::vector<VkDescriptorPool> pools_;
  std::vector<VkBufferView> views_;
  std::uint32_t sets_left_ = 0;
  std::uint32_t bindings_left_ = 0;
};

}  // namespace halfstep::vk
