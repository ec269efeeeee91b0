#include "vk/shader/pipeline_pool.h"

#include <algorithm>
#include <utility>

#include "vk/device/create.h"
#include "vk/device/structure.h"

namespace halfstep::vk {
namespace {

VkDescriptorType type_of(SetBindings set, std::uint32_t binding) {
  if (set.uniforms) return VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  const bool texels = binding < 32 && (set.texels >> binding & 1) != 0;
  return texels ? VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

}  // namespace

PipelinePool::PipelinePool(Context& context) : context_(context), cache_(context), kernels_(context) {}

PipelinePool::~PipelinePool() {
  const DeviceTable& table = context_.table();
  for (const auto& [key, entry] : pipelines_) destroy(*entry.pipeline);
  for (const auto& [key, layout] : layouts_)
    table.vkDestroyPipelineLayout(context_.device(), layout, context_.allocator());
  for (const auto& [key, layout] : set_layouts_)
    table.vkDestroyDescriptorSetLayout(context_.device(), layout, context_.allocator());
}

void PipelinePool::destroy(const Pipeline& pipeline) {
  context_.table().vkDestroyPipeline(context_.device(), pipeline.handle, context_.allocator());
}

std::shared_ptr<const Pipeline> PipelinePool::find(const PipelineKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = pipelines_.find(key);
  if (found == pipelines_.end()) return nullptr;
  found->second.found = ++finds_;
  return found->second.pipeline;
}

std::shared_ptr<const Pipeline> PipelinePool::add(const PipelineKey& key, const Pipeline& made) {
  const std::scoped_lock lock(mutex_);
  const auto [at, added] = pipelines_.try_emplace(key);
  if (added) {
    at->second.pipeline = std::make_shared<Pipeline>(made);
    at->second.pipeline->shader = at->first.shader;
  } else {
    destroy(made);
  }
  at->second.found = ++finds_;
  std::shared_ptr<const Pipeline> added_or_found = at->second.pipeline;
  has_new_ = true;
  drop_unused();
  return added_or_found;
}

/// Destroys those that were found longest ago. Only find() and add() return a pipeline, so what nobody has now nobody
/// gets meanwhile.
void PipelinePool::drop_unused() {
  std::vector<std::pair<std::uint64_t, decltype(pipelines_)::iterator>> unused;
  for (auto at = pipelines_.begin(); at != pipelines_.end(); ++at) {
    if (at->second.pipeline.use_count() == 1) unused.emplace_back(at->second.found, at);
  }
  if (unused.size() <= most_unused) return;
  const auto kept = unused.end() - most_unused;
  std::nth_element(unused.begin(), kept, unused.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto dropped = unused.begin(); dropped != kept; ++dropped) {
    destroy(*dropped->second->second.pipeline);
    pipelines_.erase(dropped->second);
  }
}

VkDescriptorSetLayout PipelinePool::set_layout(SetBindings set) {
  const std::scoped_lock lock(mutex_);
  return known_set_layout(set);
}

VkDescriptorSetLayout PipelinePool::known_set_layout(SetBindings set) {
  const auto found = set_layouts_.find(set);
  if (found != set_layouts_.end()) return found->second;
  std::vector<VkDescriptorSetLayoutBinding> bindings;
  for (std::uint32_t i = 0; i < set.bindings; ++i) {
    bindings.push_back({i, type_of(set, i), 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr});
  }
  auto info = structure<VkDescriptorSetLayoutCreateInfo>(VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO);
  info.bindingCount = set.bindings;
  info.pBindings = bindings.data();
  const VkDescriptorSetLayout layout =
      create(context_, context_.table().vkCreateDescriptorSetLayout, info, "vkCreateDescriptorSetLayout");
  return set_layouts_.emplace(set, layout).first->second;
}

VkPipelineLayout PipelinePool::layout(SetBindings set, std::uint32_t push_bytes, bool storing) {
  const std::scoped_lock lock(mutex_);
  const LayoutKey key{set, push_bytes, storing};
  const auto found = layouts_.find(key);
  if (found != layouts_.end()) return found->second;
  std::vector<VkDescriptorSetLayout> sets{known_set_layout(set)};
  if (storing) sets.push_back(known_set_layout(storing_bindings));
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, push_bytes};
  auto info = structure<VkPipelineLayoutCreateInfo>(VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO);
  info.setLayoutCount = static_cast<std::uint32_t>(sets.size());
  info.pSetLayouts = sets.data();
  info.pushConstantRangeCount = push_bytes != 0 ? 1 : 0;
  info.pPushConstantRanges = &push;
  const VkPipelineLayout layout =
      create(context_, context_.table().vkCreatePipelineLayout, info, "vkCreatePipelineLayout");
  return layouts_.emplace(key, layout).first->second;
}

void PipelinePool::save() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    if (!std::exchange(has_new_, false)) return;
  }
  kernels_.save();
  cache_.save();
}

}  // namespace halfstep::vk
