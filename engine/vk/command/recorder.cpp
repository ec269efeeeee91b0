#include "vk/command/recorder.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include "vk/device/create.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {
namespace {

constexpr VkPipelineStageFlags work_stages = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags work_writes = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags work_reads =
    VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_UNIFORM_READ_BIT;

void check_groups(const Context& context, const Pipeline& pipeline, const std::array<std::uint32_t, 3>& groups) {
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::uint32_t limit = context.capabilities().limits.maxComputeWorkGroupCount[axis];
    if (groups[axis] > limit) {
      fail(ErrorCode::unsupported, "dispatch",
           fmt::format("expected {} to take at most {} workgroups along {}, the device's limit, got {}",
                       pipeline.shader, limit, "xyz"[axis], groups[axis]));
    }
  }
}

}  // namespace

Recorder::Recorder(Context& context) : context_(context.shared_from_this()) {
  auto pool = structure<VkCommandPoolCreateInfo>(VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO);
  pool.queueFamilyIndex = context.queue_family();
  pool_ = create(context, context.table().vkCreateCommandPool, pool, "vkCreateCommandPool");
  auto info = structure<VkCommandBufferAllocateInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO);
  info.commandPool = pool_;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  const VkResult result = context.table().vkAllocateCommandBuffers(context.device(), &info, &commands_);
  if (result != VK_SUCCESS) release();
  check(result, "vkAllocateCommandBuffers");
}

Recorder::Recorder(Context& context, VkCommandBuffer commands)
    : context_(context.shared_from_this()), commands_(commands) {}

Recorder::~Recorder() {
  release();
}

void Recorder::release() noexcept {
  context_->table().vkDestroyQueryPool(context_->device(), queries_, context_->allocator());
  const auto lock = context_->lock_labels();
  // This also frees the command buffer.
  context_->table().vkDestroyCommandPool(context_->device(), pool_, context_->allocator());
}

void Recorder::begin(std::uint32_t timestamps) {
  {
    const auto lock = context_->lock_labels();
    check(context_->table().vkResetCommandPool(context_->device(), pool_, 0), "vkResetCommandPool");
    const auto info = structure<VkCommandBufferBeginInfo>(VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO);
    check(context_->table().vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
  }
  bound_ = VK_NULL_HANDLE;
  queries_used_ = 0;
  if (context_->capabilities().timestamp_bits == 0) timestamps = 0;
  if (timestamps > query_capacity_) make_queries(timestamps);
  if (timestamps > 0) context_->table().vkCmdResetQueryPool(commands_, queries_, 0, query_capacity_);
}

void Recorder::make_queries(std::uint32_t capacity) {
  context_->table().vkDestroyQueryPool(context_->device(), queries_, context_->allocator());
  queries_ = VK_NULL_HANDLE;
  query_capacity_ = 0;
  auto info = structure<VkQueryPoolCreateInfo>(VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO);
  info.queryType = VK_QUERY_TYPE_TIMESTAMP;
  info.queryCount = capacity;
  queries_ = create(*context_, context_->table().vkCreateQueryPool, info, "vkCreateQueryPool");
  query_capacity_ = capacity;
}

void Recorder::end() {
  check(context_->table().vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
}

void Recorder::barrier() {
  auto memory = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = work_writes;
  memory.dstAccessMask = work_reads | work_writes;
  context_->table().vkCmdPipelineBarrier(commands_, work_stages, work_stages, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Recorder::dispatch_barrier() {
  constexpr VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  auto memory = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_UNIFORM_READ_BIT;
  context_->table().vkCmdPipelineBarrier(commands_, stage, stage, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Recorder::outer_barrier() {
  auto memory = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  context_->table().vkCmdPipelineBarrier(commands_, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT,
                                         VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1, &memory, 0, nullptr, 0, nullptr);
}

void Recorder::host_barrier() {
  auto memory = structure<VkMemoryBarrier>(VK_STRUCTURE_TYPE_MEMORY_BARRIER);
  memory.srcAccessMask = work_writes;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  context_->table().vkCmdPipelineBarrier(commands_, work_stages, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0, nullptr,
                                         0, nullptr);
}

void Recorder::dispatch(const Pipeline& pipeline, std::span<const VkDescriptorSet> sets,
                        std::span<const std::byte> push, const std::array<std::uint32_t, 3>& groups,
                        std::uint32_t first_group) {
  if (push.size() != pipeline.push_bytes) {
    fail("dispatch", fmt::format("expected {} bytes of push constants for {}, got {}", pipeline.push_bytes,
                                 pipeline.shader, push.size()));
  }
  check_groups(*context_, pipeline, groups);
  const DeviceTable& table = context_->table();
  if (bound_ != pipeline.handle) {
    table.vkCmdBindPipeline(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle);
    bound_ = pipeline.handle;
  }
  table.vkCmdBindDescriptorSets(commands_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0,
                                static_cast<std::uint32_t>(sets.size()), sets.data(), 0, nullptr);
  if (!push.empty()) {
    table.vkCmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, pipeline.push_bytes,
                             push.data());
  }
  if (pipeline.first_group_at != 0) {
    table.vkCmdPushConstants(commands_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, pipeline.first_group_at,
                             sizeof first_group, &first_group);
  }
  table.vkCmdDispatch(commands_, groups[0], groups[1], groups[2]);
}

void Recorder::copy(VkBuffer source, std::uint64_t source_offset, VkBuffer target, std::uint64_t target_offset,
                    std::uint64_t bytes) {
  const VkBufferCopy region{source_offset, target_offset, bytes};
  context_->table().vkCmdCopyBuffer(commands_, source, target, 1, &region);
}

void Recorder::fill(VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes, std::uint32_t word) {
  context_->table().vkCmdFillBuffer(commands_, buffer, offset, bytes, word);
}

void Recorder::begin_label(const std::string& text) {
  if (!context_->has_debug_utils()) return;
  auto label = structure<VkDebugUtilsLabelEXT>(VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT);
  label.pLabelName = text.c_str();
  const auto lock = context_->lock_labels();
  context_->table().vkCmdBeginDebugUtilsLabelEXT(commands_, &label);
}

void Recorder::end_label() {
  if (!context_->has_debug_utils()) return;
  const auto lock = context_->lock_labels();
  context_->table().vkCmdEndDebugUtilsLabelEXT(commands_);
}

void Recorder::timestamp() {
  if (queries_used_ == query_capacity_) return;
  context_->table().vkCmdWriteTimestamp(commands_, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries_, queries_used_++);
}

void Recorder::read_timestamps(std::vector<std::uint64_t>& ticks) const {
  if (queries_used_ == 0) return;
  const std::size_t before = ticks.size();
  ticks.resize(before + queries_used_);
  check(context_->table().vkGetQueryPoolResults(context_->device(), queries_, 0, queries_used_,
                                                queries_used_ * sizeof ticks[0], &ticks[before], sizeof ticks[0],
                                                VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT),
        "vkGetQueryPoolResults");
}

double microseconds(const Context& context, std::uint64_t begin, std::uint64_t end) {
  // Only the lowest bits are valid, and they wrap around.
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - context.capabilities().timestamp_bits);
  return static_cast<double>((end - begin) & mask) *
         static_cast<double>(context.capabilities().limits.timestampPeriod) / 1000;
}

}  // namespace halfstep::vk
