#include "vk/descriptors.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>

#include "vk/result.h"
#include "vk/structure.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t sets_in_pool = 64;
constexpr std::uint32_t bindings_in_pool = 6 * sets_in_pool;

void check_range(const Context& context, const BufferRange& range) {
  const VkPhysicalDeviceLimits& limits = context.capabilities().limits;
  if (range.size > limits.maxStorageBufferRange) {
    fail("memory",
         fmt::format("expected tensor {} to take at most {} bytes, what {} can bind (maxStorageBufferRange), got {}",
                     range.name, limits.maxStorageBufferRange, context.capabilities().name, range.size),
         "make the batch or the layer smaller");
  }
  if (range.size == 0) fail("memory", fmt::format("expected tensor {} to have bytes to bind, got none", range.name));
  if (range.offset % limits.minStorageBufferOffsetAlignment != 0) {
    fail("memory", fmt::format("expected tensor {} to lie at a multiple of {} bytes, got {}", range.name,
                               limits.minStorageBufferOffsetAlignment, range.offset));
  }
}

}  // namespace

DescriptorSets::DescriptorSets(Context& context) : context_(context.shared_from_this()) {}

DescriptorSets::~DescriptorSets() {
  for (VkDescriptorPool pool : pools_) context_->table().vkDestroyDescriptorPool(context_->device(), pool, nullptr);
}

VkDescriptorSet DescriptorSets::make(const Pipeline& pipeline, std::span<const BufferRange> ranges) {
  if (ranges.size() != pipeline.bindings) {
    fail("memory",
         fmt::format("expected {} buffers for {}, got {}", pipeline.bindings, pipeline.shader, ranges.size()));
  }
  std::vector<VkDescriptorBufferInfo> buffers;
  for (const BufferRange& range : ranges) {
    check_range(*context_, range);
    buffers.push_back({range.buffer, range.offset, range.size});
  }
  VkDescriptorSet set = allocate(pipeline.set_layout, pipeline.bindings);
  auto write = structure<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
  write.dstSet = set;
  write.descriptorCount = pipeline.bindings;  // goes on from binding 0 to those that follow
  write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  write.pBufferInfo = buffers.data();
  if (!ranges.empty()) context_->table().vkUpdateDescriptorSets(context_->device(), 1, &write, 0, nullptr);
  return set;
}

VkDescriptorSet DescriptorSets::allocate(VkDescriptorSetLayout layout, std::uint32_t bindings) {
  if (sets_left_ == 0 || bindings_left_ < bindings) add_pool(bindings);
  auto info = structure<VkDescriptorSetAllocateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO);
  info.descriptorPool = pools_.back();
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  check(context_->table().vkAllocateDescriptorSets(context_->device(), &info, &set), "vkAllocateDescriptorSets");
  --sets_left_;
  bindings_left_ -= bindings;
  return set;
}

void DescriptorSets::add_pool(std::uint32_t bindings) {
  bindings_left_ = std::max(bindings, bindings_in_pool);
  sets_left_ = sets_in_pool;
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, bindings_left_};
  auto info = structure<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  info.maxSets = sets_left_;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  check(context_->table().vkCreateDescriptorPool(context_->device(), &info, nullptr, &pool), "vkCreateDescriptorPool");
  pools_.push_back(pool);
}

}  // namespace halfstep::vk
