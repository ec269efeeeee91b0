#include "vk/command/descriptors.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vk/device/create.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {
namespace {

constexpr std::uint32_t sets_in_pool = 64;
constexpr std::uint32_t bindings_in_pool = 6 * sets_in_pool;

void check_range(const Context& context, const BufferRange& range) {
  const VkPhysicalDeviceLimits& limits = context.capabilities().limits;
  if (range.texels == VK_FORMAT_UNDEFINED && range.size > limits.maxStorageBufferRange) {
    fail(ErrorCode::unsupported, "memory",
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

VkFormat quad_format(DType dtype) {
  return is_narrow(dtype) ? VK_FORMAT_R32G32_UINT : VK_FORMAT_R32G32B32A32_SFLOAT;
}

DescriptorSets::DescriptorSets(Context& context) : context_(context.shared_from_this()) {}

DescriptorSets::~DescriptorSets() {
  for (VkBufferView view : views_)
    context_->table().vkDestroyBufferView(context_->device(), view, context_->allocator());
  for (VkDescriptorPool pool : pools_)
    context_->table().vkDestroyDescriptorPool(context_->device(), pool, context_->allocator());
}

VkDescriptorSet DescriptorSets::make(const Pipeline& pipeline, std::span<const BufferRange> ranges) {
  if (ranges.size() != pipeline.bindings) {
    fail(ErrorCode::unsupported, "memory",
         fmt::format("expected {} buffers for {}, got {}", pipeline.bindings, pipeline.shader, ranges.size()));
  }
  for (const BufferRange& range : ranges) check_range(*context_, range);
  VkDescriptorSet set = allocate(pipeline.set_layout, pipeline.bindings);
  for (std::uint32_t i = 0; i < pipeline.bindings; ++i) {
    const bool texels = ranges[i].texels != VK_FORMAT_UNDEFINED;
    write(set, i, texels ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, ranges[i]);
  }
  return set;
}

VkDescriptorSet DescriptorSets::make_storing(const Pipeline& pipeline, const std::array<BufferRange, 3>& ranges) {
  constexpr std::uint32_t count = 3;
  VkDescriptorSet set = allocate(pipeline.storing_layout, count);
  for (std::uint32_t i = 0; i < count; ++i) write(set, i, VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, ranges[i]);
  return set;
}

void DescriptorSets::write(VkDescriptorSet set, std::uint32_t binding, VkDescriptorType type,
                           const BufferRange& range) {
  auto write = structure<VkWriteDescriptorSet>(VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET);
  write.dstSet = set;
  write.dstBinding = binding;
  write.descriptorCount = 1;
  write.descriptorType = type;
  const VkDescriptorBufferInfo buffer{range.buffer, range.offset, range.size};
  const VkBufferView texel_view = range.texels != VK_FORMAT_UNDEFINED ? view(range) : VK_NULL_HANDLE;
  write.pBufferInfo = &buffer;
  write.pTexelBufferView = &texel_view;
  context_->table().vkUpdateDescriptorSets(context_->device(), 1, &write, 0, nullptr);
}

VkBufferView DescriptorSets::view(const BufferRange& range) {
  auto info = structure<VkBufferViewCreateInfo>(VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO);
  info.buffer = range.buffer;
  info.format = range.texels;
  info.offset = range.offset;
  info.range = range.size;
  views_.reserve(views_.size() + 1);
  views_.push_back(create(*context_, context_->table().vkCreateBufferView, info, "vkCreateBufferView"));
  return views_.back();
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
  bindings = std::max(bindings, bindings_in_pool);
  const std::array<VkDescriptorPoolSize, 3> sizes{{{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, bindings},
                                                   {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, bindings},
                                                   {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, bindings}}};
  auto info = structure<VkDescriptorPoolCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO);
  info.maxSets = sets_in_pool;
  info.poolSizeCount = static_cast<std::uint32_t>(sizes.size());
  info.pPoolSizes = sizes.data();
  pools_.reserve(pools_.size() + 1);
  pools_.push_back(create(*context_, context_->table().vkCreateDescriptorPool, info, "vkCreateDescriptorPool"));
  sets_left_ = sets_in_pool;
  bindings_left_ = bindings;
}

}  // namespace halfstep::vk
