#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "vk/command/recorder.h"
#include "vk/device/context.h"

namespace halfstep::vk {

/// Submits recordings and tells when they finish, without waiting. Tickets count up from 1 and finish in order. To be
/// used by one thread at a time; several timelines may share a context. On destruction it waits for what is under way.
class Timeline {
 public:
  explicit Timeline(Context& context);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Submits and returns at once. Throws Error where the device is lost.
  std::uint64_t submit(const Recorder& recording);
  /// The same for several recordings, in order and each a batch of its own, under one ticket: for a step that is cut
  /// into parts so that no watchdog fires.
  std::uint64_t submit(std::span<const Recorder* const> recordings);

  /// Whether a ticket's work is done; never blocks. 0 always is.
  bool finished(std::uint64_t ticket);
  /// The newest ticket whose work is done, 0 for none; never blocks.
  std::uint64_t completed();
  /// Blocks until the ticket's work is done. Counted in waits() where it was not done already.
  void wait(std::uint64_t ticket);
  /// How often the host has been blocked.
  std::uint64_t waits() const { return waits_; }

 private:
  struct Pending {
    std::uint64_t ticket;
    VkFence fence;
  };

  VkFence take_fence();
  void retire();

  std::shared_ptr<Context> context_;
  std::deque<Pending> pending_;  ///< oldest first
  std::vector<VkFence> free_;
  std::uint64_t last_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t waits_ = 0;
};

}  // namespace halfstep::vk
