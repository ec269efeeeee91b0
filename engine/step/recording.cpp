#include "step/recording.h"

namespace halfstep::step {

Recording::Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
                     std::span<const vk::Buffer* const> buffers, Options options)
    : sets_(context), recorder_(context) {
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
  recorder_.dispatch(pipeline, sets_.make(pipeline, ranges), push, dispatch.groups);
}

}  // namespace halfstep::step
