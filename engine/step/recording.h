#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "plan/pieces.h"
#include "plan/plan.h"
#include "vk/command/descriptors.h"
#include "vk/command/memory.h"
#include "vk/command/recorder.h"
#include "vk/command/timeline.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::step {

/// When a dispatch ran, in microseconds since the start of its submit.
struct DispatchTime {
  double begin = 0;
  double end = 0;
};

/// A plan recorded into command buffers, one for each of its pieces, to be submitted as often as wanted. It begins with
/// a full barrier, because queue order alone does not make an earlier submit's writes visible.
class Recording {
 public:
  struct Options {
    bool timestamps = false;  ///< one after each dispatch, for dispatch_times()
    bool shares = false;  ///< whether the program works on an application's memory: each piece has a barrier for all
                          ///< stages at both ends
  };

  /// `buffers[i]` is buffer i of the program, the arena first. They, the pipelines and the plan must outlive the
  /// recording.
  Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
            std::span<const vk::Buffer* const> buffers, Options options);
  Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
            std::span<const vk::Buffer* const> buffers)
      : Recording(context, pipelines, plan, buffers, Options{}) {}

  /// Submits all pieces, under one ticket, without waiting. Pieces that were cut anew are recorded first.
  std::uint64_t submit(vk::Timeline& timeline);
  /// The same of the pieces from `next` to before `end`. A run is all of them, in order, each once. `next` moves past
  /// each piece that was submitted, also where this throws: the run goes on from there.
  std::uint64_t submit(vk::Timeline& timeline, std::size_t& next, std::size_t end);
  /// Cuts anew if pieces take longer than `seconds`, or need no longer be so short. Not between the pieces of a run.
  void limit(double seconds);
  /// Where pieces from `first` on end that are expected to take no longer than `seconds`: after one at least.
  std::size_t end_within(std::size_t first, double seconds) const;
  /// To be called once for each submit that has finished, before the next one: reads how long the pieces took, and
  /// cuts anew if they should be cut in another way. Does not wait. Where it throws, it may be called again.
  void finished();

  /// Submits, and waits until that has finished.
  void run(vk::Timeline& timeline);

  /// Records all of it, uncut, into an application's command buffer, between barriers for all stages.
  void record_into(VkCommandBuffer commands);

  std::size_t pieces() const { return pieces_.list().size(); }
  /// See plan::Pieces::awaited.
  std::vector<std::size_t> awaited() const { return pieces_.awaited(); }
  /// Microseconds that the device worked on the last finished submit. 0 on a queue without timestamps.
  double microseconds() const { return microseconds_; }
  /// When each dispatch of the last finished submit ran. Empty without Options::timestamps, and on a
  /// queue that has none.
  const std::vector<DispatchTime>& dispatch_times() const { return dispatch_times_; }
  /// The device's clock when the last finished submit began, in its own unit; 0 on a queue without timestamps.
  std::uint64_t first_tick() const { return first_tick_; }

 private:
  /// What set 1 holds for a dispatch.
  using StoringKey = std::array<std::uint32_t, 4>;  ///< Storing's streams and scales
  static StoringKey key_of(const plan::Dispatch& dispatch) {
    const plan::Storing& storing = dispatch.storing;
    return {storing.streams[0], storing.streams[1], storing.scales[0], storing.scales[1]};
  }
  /// What a dispatch is recorded with.
  struct Bound {
    std::vector<VkDescriptorSet> sets;
    std::vector<std::byte> push;
  };

  void make_keys();
  void bind(const plan::Dispatch& dispatch);
  VkDescriptorSet storing_set(const vk::Pipeline& pipeline, const plan::Dispatch& dispatch);
  void record();
  void record(vk::Recorder& recorder, const plan::Piece& piece);
  void record(vk::Recorder& recorder, const plan::Slice& slice);
  void read_dispatch_times(std::span<const std::uint64_t> ticks);

  vk::Context& context_;
  vk::Pipelines& pipelines_;
  const plan::Plan& plan_;
  std::vector<const vk::Buffer*> buffers_;
  Options options_;
  plan::Pieces pieces_;
  vk::DescriptorSets sets_;
  std::map<StoringKey, std::uint64_t> key_places_;  ///< where each lies in keys_
  vk::Buffer keys_;
  std::map<StoringKey, VkDescriptorSet> storing_sets_;
  std::vector<Bound> bound_;                              ///< of each dispatch
  std::vector<std::unique_ptr<vk::Recorder>> recorders_;  ///< of each piece
  bool is_recorded_ = false;                              ///< as pieces are cut now
  double microseconds_ = 0;
  std::uint64_t first_tick_ = 0;
  std::vector<DispatchTime> dispatch_times_;
};

}  // namespace halfstep::step
