#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vk/command/memory.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::vk {

/// A command buffer and its pool, or an application's command buffer. The recording may be submitted any number of
/// times, but only after the previous submit has finished; the same holds for recording again (begin).
class Recorder {
 public:
  explicit Recorder(Context& context);
  /// Records into a command buffer of an application, which begins and ends it.
  Recorder(Context& context, VkCommandBuffer commands);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Starts a new recording, with room for `timestamps` timestamps (none on a queue without timestamps).
  void begin(std::uint32_t timestamps = 0);
  void end();

  /// A full barrier: all shader and copy writes before it, also of earlier submits, are visible to all shaders and
  /// copies after it, and writes after it wait for reads before it.
  void barrier();
  /// Likewise between dispatches alone: what copies read and write, it does not wait for.
  void dispatch_barrier();
  /// A full barrier between this and work of any kind, for what an application shares.
  void outer_barrier();
  /// All writes before it are visible to the host once the submit has finished.
  void host_barrier();

  /// `sets` are sets 0, 1, ... Throws Error if `groups` exceeds the device's limit, or `push` does not have the
  /// pipeline's size. Workgroups are counted along x from `first_group`, if the pipeline is one that starts at any,
  /// else from 0.
  void dispatch(const Pipeline& pipeline, std::span<const VkDescriptorSet> sets, std::span<const std::byte> push,
                const std::array<std::uint32_t, 3>& groups, std::uint32_t first_group = 0);
  void copy(VkBuffer source, std::uint64_t source_offset, VkBuffer target, std::uint64_t target_offset,
            std::uint64_t bytes);
  /// Sets each 32-bit word; offset and bytes are multiples of four.
  void fill(VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes, std::uint32_t word);

  /// Labels the commands up to end_label(), as Context::name names objects.
  void begin_label(const std::string& text);
  void end_label();

  /// Writes a timestamp when everything recorded before it has finished.
  void timestamp();
  /// Appends the timestamps of the last submit, which must have finished, to `ticks`, as the device counts; see
  /// microseconds(). Appends nothing if there are none.
  void read_timestamps(std::vector<std::uint64_t>& ticks) const;

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
  VkPipeline bound_ = VK_NULL_HANDLE;  ///< the last bound pipeline, to avoid binding it again
};

/// From one timestamp of a device to a later one.
double microseconds(const Context& context, std::uint64_t begin, std::uint64_t end);

}  // namespace halfstep::vk
