#include "vk/command/timeline.h"

#include <limits>

#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {

Timeline::Timeline(Context& context) : context_(context.shared_from_this()) {}

Timeline::~Timeline() {
  const DeviceTable& table = context_->table();
  for (const Pending& pending : pending_) {
    // The result is ignored, because nothing more can be done: a lost device has also finished.
    table.vkWaitForFences(context_->device(), 1, &pending.fence, VK_TRUE, std::numeric_limits<std::uint64_t>::max());
    table.vkDestroyFence(context_->device(), pending.fence, nullptr);
  }
  for (VkFence fence : free_) table.vkDestroyFence(context_->device(), fence, nullptr);
}

std::uint64_t Timeline::submit(const Recorder& recording) {
  const Recorder* const recordings[] = {&recording};
  return submit(recordings);
}

std::uint64_t Timeline::submit(std::span<const Recorder* const> recordings) {
  completed();  // recycles fences
  std::vector<VkCommandBuffer> commands;
  for (const Recorder* recording : recordings) commands.push_back(recording->handle());
  auto batch = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  batch.commandBufferCount = 1;
  std::vector<VkSubmitInfo> batches(commands.size(), batch);
  for (std::size_t i = 0; i < commands.size(); ++i) batches[i].pCommandBuffers = &commands[i];

  VkFence fence = take_fence();
  try {
    context_->submit(batches, fence);
  } catch (...) {
    free_.push_back(fence);
    throw;
  }
  pending_.push_back({++last_, fence});
  return last_;
}

VkFence Timeline::take_fence() {
  VkFence fence = VK_NULL_HANDLE;
  if (!free_.empty()) {
    fence = free_.back();
    free_.pop_back();
    return fence;
  }
  const auto info = structure<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  check(context_->table().vkCreateFence(context_->device(), &info, nullptr, &fence), "vkCreateFence");
  return fence;
}

/// Removes the oldest ticket, whose work has finished, and recycles its fence.
void Timeline::retire() {
  const Pending done = pending_.front();
  check(context_->table().vkResetFences(context_->device(), 1, &done.fence), "vkResetFences");
  pending_.pop_front();
  free_.push_back(done.fence);
  completed_ = done.ticket;
}

std::uint64_t Timeline::completed() {
  while (!pending_.empty()) {
    const VkResult status = context_->table().vkGetFenceStatus(context_->device(), pending_.front().fence);
    if (status == VK_NOT_READY) break;
    check(status, "vkGetFenceStatus");
    retire();
  }
  return completed_;
}

bool Timeline::finished(std::uint64_t ticket) {
  return ticket <= completed_ || ticket <= completed();
}

void Timeline::wait(std::uint64_t ticket) {
  if (finished(ticket)) return;
  ++waits_;
  while (completed_ < ticket && !pending_.empty()) {
    check(context_->table().vkWaitForFences(context_->device(), 1, &pending_.front().fence, VK_TRUE,
                                            std::numeric_limits<std::uint64_t>::max()),
          "vkWaitForFences");
    retire();
  }
}

}  // namespace halfstep::vk
