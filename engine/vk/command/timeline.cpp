#include "vk/command/timeline.h"

#include <chrono>
#include <limits>
#include <thread>

#include "vk/device/create.h"
#include "vk/device/result.h"
#include "vk/device/structure.h"

namespace halfstep::vk {

Timeline::Timeline(Context& context) : context_(context.shared_from_this()) {}

Timeline::~Timeline() {
  wait_for_all();
  const DeviceTable& table = context_->table();
  for (const Pending& pending : pending_)
    table.vkDestroyFence(context_->device(), pending.fence, context_->allocator());
  for (VkFence fence : free_) table.vkDestroyFence(context_->device(), fence, context_->allocator());
}

std::uint64_t Timeline::submit(const Recorder& recording) {
  const Recorder* const recordings[] = {&recording};
  std::size_t submitted = 0;
  return submit(recordings, submitted);
}

std::uint64_t Timeline::submit(std::span<const Recorder* const> recordings, std::size_t& submitted) {
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
    ++submitted;
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

/// A lost device has also finished. Where memory has run out, some may be free again a little later.
void Timeline::wait_for_all() noexcept {
  constexpr auto pause = std::chrono::milliseconds(10);
  for (const Pending& pending : pending_) {
    for (int tries = 0; tries < 1000; ++tries) {
      const VkResult result = await(pending.fence);
      if (result == VK_SUCCESS || result == VK_ERROR_DEVICE_LOST) break;
      std::this_thread::sleep_for(pause);
    }
  }
}

/// Waits for as long as it takes.
VkResult Timeline::await(VkFence fence) const noexcept {
  VkResult result = VK_TIMEOUT;
  while (result == VK_TIMEOUT) {
    result = context_->table().vkWaitForFences(context_->device(), 1, &fence, VK_TRUE,
                                               std::numeric_limits<std::uint64_t>::max());
  }
  return result;
}

VkFence Timeline::take_fence() {
  if (!free_.empty()) {
    const VkFence fence = free_.back();
    free_.pop_back();
    return fence;
  }
  const auto info = structure<VkFenceCreateInfo>(VK_STRUCTURE_TYPE_FENCE_CREATE_INFO);
  return create(*context_, context_->table().vkCreateFence, info, "vkCreateFence");
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
    check(await(pending_.front().fence), "vkWaitForFences");
    retire();
  }
}

}  // namespace halfstep::vk
