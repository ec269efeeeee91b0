#pragma once

#include <cstddef>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "plan/lowering.h"
#include "plan/pointwise.h"
#include "vk/command/descriptors.h"
#include "vk/command/memory.h"
#include "vk/command/recorder.h"
#include "vk/command/timeline.h"
#include "vk/shader/pipelines.h"

/// Something to do for the GPU layer.
namespace halfstep::testing {

/// `size` bytes, others for another seed.
inline std::vector<std::byte> pattern(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>((i * 31 + i / 251 + seed) & 0xff);
  return bytes;
}

/// The shader "copy" over whole buffers.
inline plan::Dispatch copy_dispatch(std::uint32_t bytes, const plan::Target& target = {}) {
  plan::Dispatch dispatch;
  dispatch.label = "test/copy";
  dispatch.shader = "copy";
  dispatch.constants = {64};
  dispatch.push = plan::push_bytes(bytes / 8);
  dispatch.operands = {{0, plan::Access::read}, {1, plan::Access::write}};
  dispatch.groups = plan::groups_for(target, bytes / 8, 64);
  return dispatch;
}

/// y = -x, by an expression.
inline plan::Dispatch negation(const plan::Target& target, DType dtype = DType::f32) {
  plan::ProgramBuilder builder(target);
  const TensorType type{dtype, {64}};
  plan::Expression expression;
  expression.layout = plan::layout(type.shape);
  expression.reads = {plan::Reading{}};
  expression.value = expression.add({plan::Op::scale, 0, 0, -1});
  builder.dispatch(plan::pointwise(std::move(expression), {{builder.tensor("y", type), plan::Access::write},
                                                           {builder.tensor("x", type), plan::Access::read}}));
  return builder.finish().dispatches.front();
}

/// A recording that copies one buffer to another with a dispatch, and the second to a third with a copy.
struct CopyTwice {
  CopyTwice(vk::Context& context, std::uint32_t bytes)
      : first(context, bytes, vk::Memory::device, "first"),
        second(context, bytes, vk::Memory::device, "second"),
        third(context, bytes, vk::Memory::readback, "third"),
        pipelines(context),
        sets(context),
        recorder(context),
        timeline(context) {
    const plan::Dispatch dispatch = copy_dispatch(bytes);
    const vk::Pipeline& pipeline = pipelines.get(dispatch);
    const vk::BufferRange ranges[] = {{first.handle(), 0, bytes, "first"}, {second.handle(), 0, bytes, "second"}};
    recorder.begin(2);
    recorder.barrier();
    recorder.timestamp();
    const VkDescriptorSet set[] = {sets.make(pipeline, ranges)};
    recorder.dispatch(pipeline, set, dispatch.push, dispatch.groups);
    recorder.timestamp();
    recorder.barrier();
    recorder.copy(second.handle(), 0, third.handle(), 0, bytes);
    recorder.host_barrier();
    recorder.end();
  }
  std::vector<std::byte> result() const {
    third.invalidate(0, third.bytes());
    return {third.mapped(), third.mapped() + third.bytes()};
  }

  vk::Buffer first, second, third;
  vk::Pipelines pipelines;
  vk::DescriptorSets sets;
  vk::Recorder recorder;
  vk::Timeline timeline;
};

}  // namespace halfstep::testing
