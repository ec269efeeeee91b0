#pragma once

#include <cstdint>
#include <map>
#include <span>

#include "plan/plan.h"
#include "vk/context.h"
#include "vk/descriptors.h"
#include "vk/memory.h"
#include "vk/pipelines.h"
#include "vk/recorder.h"

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
  void make_streams(vk::Context& context, const plan::Program& program);
  VkDescriptorSet noise_set(const vk::Pipeline& pipeline, const plan::Plan& plan, const plan::Dispatch& dispatch,
                            std::span<const vk::Buffer* const> buffers);
  void record(vk::Pipelines& pipelines, const plan::Plan& plan, const plan::Dispatch& dispatch,
              std::span<const vk::Buffer* const> buffers);

  vk::DescriptorSets sets_;
  std::map<std::uint32_t, std::uint64_t> stream_places_;  ///< for each stream of noise, where its number lies
  vk::Buffer streams_;
  std::map<std::uint32_t, VkDescriptorSet> noise_sets_;  ///< for each stream
  vk::Recorder recorder_;
};

}  // namespace halfstep::step
