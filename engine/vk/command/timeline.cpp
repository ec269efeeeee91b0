#include "vk/command/timeline.h"

#include <limits>

#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {

Timeline::Timeline(Context& context) : context_(context.shared_from_this()) {}

Timeline::~Timeline() {
  wait_for_all();
  const DeviceTable& table = context_->table();
  for (const Pending& pending : pending_) table.vkDestroyFence(context_->device(), pending.fence, nullptr);
  for (VkFence fence : free_) table.vkDestroyFence(context_->device(), fence, nullptr);
}

std::uint64_t Timeline::submit(const Recorder& recording) {
  const Recorder* const recordings[] = {&recording};
  return submit(recordings);
}

std::uint64_t Timeline::submit(std::span<const Recorder* const> recordings) {
  completed();  // recycles fences
  for (const Recorder* recording : recordings) {
    // A recording that is not the last completes no ticket but the one before.
    const bool last = recording == recordings.back();
    try {
      submit_with_fence(recording->handle(), last ? last_ + 1 : last_);
    } catch (...) {
      if (recording != recordings.front()) wait_for_all();
      throw;
    }
  }
  return ++last_;
}

void Timeline::submit_with_fence(VkCommandBuffer commands, std::uint64_t ticket) {
  auto batch = structure<VkSubmitInfo>(VK_STRUCTURE_TYPE_SUBMIT_INFO);
  batch.commandBufferCount = 1;
  batch.pCommandBuffers = &commands;
  VkFence fence = take_fence();
  try {
    context_->submit(std::span(&batch, 1), fence);
  } catch (...) {
    free_.push_back(fence);
    throw;
  }
  pending_.push_back({ticket, fence});
}

/// The result is ignored, because nothing more can be done: a lost device has also finished.
void Timeline::wait_for_all() noexcept {
  for (const Pending& pending : pending_) {
    context_->table().vkWaitForFences(context_->device(), 1, &pending.fence, VK_TRUE,
                                      std::numeric_limits<std::uint64_t>::max());
  }
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

/// Removes the oldest submit, which has finished, and recycles its fence.
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
