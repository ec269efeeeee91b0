#include "step/recording.h"

#include <cstring>

namespace halfstep::step {
namespace {

/// No device asks for more as the alignment of a uniform buffer.
constexpr std::uint64_t key_alignment = 256;

}  // namespace

Recording::Recording(vk::Context& context, vk::Pipelines& pipelines, const plan::Plan& plan,
                     std::span<const vk::Buffer* const> buffers, Options options)
    : sets_(context), recorder_(context) {
  make_keys(context, plan.program);
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

/// The keys of all dispatches, each at a place that a binding may start at, laid out as in common/storing.glsl.
void Recording::make_keys(vk::Context& context, const plan::Program& program) {
  for (const plan::Dispatch& dispatch : program.dispatches) {
    key_places_.try_emplace(key_of(dispatch), key_places_.size() * key_alignment);
  }
  keys_ = vk::Buffer(context, key_places_.size() * key_alignment, vk::Memory::upload, "keys of noise and scales");
  for (const auto& [key, place] : key_places_) {
    const auto& [stream, scales] = key;
    const std::array<std::uint32_t, 4> words{stream, 0, scales[0], scales[1]};
    std::memcpy(keys_.mapped() + place, words.data(), sizeof words);
  }
  keys_.flush(0, keys_.bytes());
}

VkDescriptorSet Recording::storing_set(const vk::Pipeline& pipeline, const plan::Plan& plan,
                                       const plan::Dispatch& dispatch, std::span<const vk::Buffer* const> buffers) {
  const auto [found, fresh] = storing_sets_.try_emplace(key_of(dispatch));
  if (!fresh) return found->second;
  const vk::BufferRange key{keys_.handle(), key_places_.at(found->first), key_alignment, keys_.name()};
  // What the program does not have is bound all the same, and not read.
  const auto range = [&](std::optional<plan::TensorId> tensor) {
    if (!tensor) return key;
    const plan::ProgramTensor& info = plan.program.tensors[*tensor];
    return vk::BufferRange{buffers[info.region.buffer]->handle(), info.region.offset, info.bytes, info.name};
  };
  found->second = sets_.make_storing(pipeline, {range(plan.program.noise_key), key, range(plan.program.scales)});
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
  if (pipeline.storing_layout != VK_NULL_HANDLE) sets.push_back(storing_set(pipeline, plan, dispatch, buffers));
  recorder_.dispatch(pipeline, sets, push, dispatch.groups);
}

}  // namespace halfstep::step
