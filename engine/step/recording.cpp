#include "step/recording.h"

#include <cstring>

#include "step/step_state.h"

namespace halfstep::step {
namespace {

/// No device asks for more as the alignment of a uniform buffer.
constexpr std::uint64_t stream_alignment = 256;

}  // namespace

Recording::Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
                     std::span<const vk::Buffer* const> buffers, Options options)
    : sets_(context), recorder_(context) {
  make_streams(context, plan.program);
  const auto count = static_cast<std::uint32_t>(plan.program.dispatches.size());
  recorder_.begin(options.timestamps ? count + 1 : 0);
  recorder_.barrier();
  if (options.timestamps) recorder_.timestamp();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (plan.barrier_before[i]) recorder_.barrier();
    record(pipelines, plan, plan.program.dispatches[i], buffers);
    if (options.timestamps) recorder_.timestamp();
  }
  recorder_.host_barrier();
  recorder_.end();
}

/// The numbers of all streams, each at a place that a binding may start at. Stream 0 is that of dispatches which draw
/// no noise.
void Recording::make_streams(vk::Context& context, const plan::Program& program) {
  stream_places_[0] = 0;
  for (const plan::Dispatch& dispatch : program.dispatches) {
    stream_places_.try_emplace(dispatch.storing.stream, stream_places_.size() * stream_alignment);
  }
  streams_ = vk::Buffer(context, stream_places_.size() * stream_alignment, vk::Memory::upload, "streams of noise");
  for (const auto& [stream, place] : stream_places_) std::memcpy(streams_.mapped() + place, &stream, sizeof stream);
  streams_.flush(0, streams_.bytes());
}

VkDescriptorSet Recording::noise_set(const vk::Pipeline& pipeline, const plan::Plan& plan,
                                     const plan::Dispatch& dispatch, std::span<const vk::Buffer* const> buffers) {
  const auto [found, fresh] = noise_sets_.try_emplace(dispatch.storing.stream);
  if (!fresh) return found->second;
  const std::uint64_t place = stream_places_.at(dispatch.storing.stream);
  const vk::BufferRange stream{streams_.handle(), place, stream_alignment, streams_.name()};
  vk::BufferRange state = stream;  // where no noise is drawn it is bound all the same, and not read
  if (plan.program.noise_key) {
    const plan::ProgramTensor& key = plan.program.tensors[*plan.program.noise_key];
    state = {buffers[key.region.buffer]->handle(), key.region.offset, sizeof(StepState), key.name};
  }
  found->second = sets_.make_noise(pipeline, state, stream);
  return found->second;
}

void Recording::record(vk::Pipelines& pipelines, const plan::Plan& plan, const plan::Dispatch& dispatch,
                       std::span<const vk::Buffer* const> buffers) {
  const vk::Pipeline& pipeline = pipelines.get(dispatch);
  std::vector<vk::BufferRange> ranges;
  std::vector<std::byte> push;
  for (const plan::Operand& operand : dispatch.operands) {
    const plan::ProgramTensor& tensor = plan.program.tensors[operand.tensor];
    const VkFormat texels = operand.texels ? vk::quad_format(tensor.type.dtype) : VK_FORMAT_UNDEFINED;
    ranges.push_back(
        {buffers[tensor.region.buffer]->handle(), tensor.region.offset, tensor.bytes, tensor.name, texels});
    if (operand.address) {
      const std::uint64_t address = buffers[tensor.region.buffer]->address() + tensor.region.offset;
      const auto bytes = std::as_bytes(std::span(&address, 1));
      push.insert(push.end(), bytes.begin(), bytes.end());
    }
  }
  push.insert(push.end(), dispatch.push.begin(), dispatch.push.end());
  std::vector<VkDescriptorSet> sets{sets_.make(pipeline, ranges)};
  if (pipeline.noise_layout != VK_NULL_HANDLE) sets.push_back(noise_set(pipeline, plan, dispatch, buffers));
  recorder_.dispatch(pipeline, sets, push, dispatch.groups);
}

}  // namespace halfstep::step
