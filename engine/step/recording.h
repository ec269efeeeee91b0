#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "plan/plan.h"
#include "vk/command/descriptors.h"
#include "vk/command/memory.h"
#include "vk/command/recorder.h"
#include "vk/device/context.h"
#include "vk/shader/pipelines.h"

namespace halfstep::step {

/// A plan recorded into a command buffer, to be submitted as often as wanted. It begins with a full barrier, because
/// queue order alone does not make an earlier submit's writes visible.
class Recording {
 public:
  struct Options {
    bool timestamps = false;  ///< one before the first dispatch and one after each
  };

  /// `buffers[i]` is buffer i of the program, the arena first; they must outlive the recording.
  Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
            std::span<const vk::Buffer* const> buffers, Options options);
  Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
            std::span<const vk::Buffer* const> buffers)
      : Recording(context, pipelines, plan, buffers, Options{}) {}

  const vk::Recorder& commands() const { return recorder_; }

 private:
  /// What set 1 holds for a dispatch.
  using StoringKey = std::pair<std::uint32_t, std::array<std::uint32_t, 2>>;  ///< Storing's stream and scales
  static StoringKey key_of(const plan::Dispatch& dispatch) {
    return {dispatch.storing.stream, dispatch.storing.scales};
  }

  void make_keys(vk::Context& context, const plan::Program& program);
  VkDescriptorSet storing_set(const vk::Pipeline& pipeline, const plan::Plan& plan, const plan::Dispatch& dispatch,
                              std::span<const vk::Buffer* const> buffers);
  void record(vk::Pipelines& pipelines, const plan::Plan& plan, const plan::Dispatch& dispatch,
              std::span<const vk::Buffer* const> buffers);

  vk::DescriptorSets sets_;
  std::map<StoringKey, std::uint64_t> key_places_;  ///< where each lies in keys_
  vk::Buffer keys_;
  std::map<StoringKey, VkDescriptorSet> storing_sets_;
  vk::Recorder recorder_;
};

}  // namespace halfstep::step
