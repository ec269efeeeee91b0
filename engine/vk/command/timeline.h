#pragma once

#include <vulkan/vulkan.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "vk/command/recorder.h"
#include "vk/device/context.h"

namespace halfstep::vk {

/// Submits recordings and tracks their completion without waiting. Tickets count up from 1 and finish in order. Use it
/// from one thread at a time; several timelines may share a context. The destructor waits for pending work.
class Timeline {
 public:
  explicit Timeline(Context& context);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// Submits and returns immediately. Throws Error if the device is lost.
  std::uint64_t submit(const Recorder& recording);
  /// The same for several recordings under one ticket, in order, each in a submit of its own, since drivers may join
  /// what is submitted together. `submitted` is raised by one for each that was. If one cannot be submitted, waits for
  /// those before it and throws.
  std::uint64_t submit(std::span<const Recorder* const> recordings, std::size_t& submitted);

  /// Whether a ticket's work has finished; never blocks. True for 0.
  bool finished(std::uint64_t ticket);
  /// The newest ticket whose work has finished, 0 for none; never blocks.
  std::uint64_t completed();
  /// Blocks until the ticket's work has finished. Counted in waits() if it had not finished already.
  void wait(std::uint64_t ticket);
  /// Blocks until everything submitted has finished, whatever a wait returns meanwhile.
  void wait_for_all() noexcept;
  /// The number of times that the host was blocked.
  std::uint64_t waits() const { return waits_; }

 private:
  struct Pending {
    std::uint64_t ticket;  ///< that is completed with it
    VkFence fence;
  };

  void submit_with_fence(VkCommandBuffer commands, std::uint64_t ticket);
  VkResult await(VkFence fence) const noexcept;
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
