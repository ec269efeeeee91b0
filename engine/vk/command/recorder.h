#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vk/command/memory.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::vk {

/// One command buffer and the pool it comes from. What it has recorded may be submitted any number of times, each once
/// the one before has finished; recording anew (begin) likewise.
class Recorder {
 public:
  explicit Recorder(Context& context);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Starts over, with room for `timestamps` timestamps (none are taken on a queue that has none).
  void begin(std::uint32_t timestamps = 0);
  void end();

  /// All shader and copy writes before it, from earlier submits too, are seen by all shaders and copies after it; and
  /// none of those after it overwrites what one before it still reads.
  void barrier();
  /// All writes before it are seen by the host once the submit has finished.
  void host_barrier();

  /// `sets` are sets 0, 1, ... Throws Error where `groups` passes the device's limit, or `push` is not the size the
  /// pipeline takes.
  void dispatch(const Pipeline& pipeline, std::span<const VkDescriptorSet> sets, std::span<const std::byte> push,
                const std::array<std::uint32_t, 3>& groups);
  void copy(VkBuffer source, std::uint64_t source_offset, VkBuffer target, std::uint64_t target_offset,
            std::uint64_t bytes);
  /// Sets each 32-bit word; offset and bytes are multiples of four.
  void fill(VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes, std::uint32_t word);

  /// Takes the time when all that is recorded before it is done.
  void timestamp();
  /// The timestamps of the last submit, which has finished, in microseconds from the first. Empty where none were
  /// taken.
  std::vector<double> timestamps() const;

  VkCommandBuffer handle() const { return commands_; }

 private:
  void make_queries(std::uint32_t capacity);
  void release() noexcept;

  std::shared_ptr<Context> context_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;
  VkQueryPool queries_ = VK_NULL_HANDLE;
  std::uint32_t query_capacity_ = 0;
  std::uint32_t queries_used_ = 0;
  VkPipeline bound_ = VK_NULL_HANDLE;  ///< the pipeline bound last, not to be bound again
};

}  // namespace halfstep::vk
