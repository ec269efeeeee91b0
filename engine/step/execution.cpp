#include "step/execution.h"

#include <algorithm>

#include "passes/backward.h"
#include "plan/host_tensor.h"
#include "state/step_state.h"
#include "vk/command/transfer.h"

namespace halfstep::step {
namespace {

constexpr std::uint32_t poison = 0xFFFFFFFF;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

/// The lowest offset from `offset` on at which a tensor lies in one part of a buffer, or if it is larger, begins one.
std::uint64_t in_part(const plan::Target& target, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t part = target.part_bytes;
  const bool whole = part == 0 || bytes == 0 || offset / part == (offset + bytes - 1) / part;
  return whole ? offset : round_up(offset, part);
}

}  // namespace

Execution::Execution(vk::Context& context, const graph::Ir& ir, std::vector<graph::ValueId> outputs,
                     ExecutionOptions options)
    : context_(context), options_(options), pipelines_(context), timeline_(context) {
  lower(ir, outputs);
  arena_ = vk::Buffer::in_parts(context, plan_.arena.bytes, "arena");
  inputs_ = vk::Buffer::in_parts(context, input_bytes_, "inputs");
  vk::fill(context, arena_, 0, arena_.bytes() / 4 * 4, poison);
  vk::fill(context, inputs_, 0, inputs_.bytes() / 4 * 4, poison);
  state_ = vk::Buffer(context, sizeof(state::StepState), vk::Memory::device, "state");
  state::StepState state;
  state.seed[0] = static_cast<std::uint32_t>(options_.seed);
  state.seed[1] = static_cast<std::uint32_t>(options_.seed >> 32);
  state.attempted[0] = static_cast<std::uint32_t>(options_.step);
  state.attempted[1] = static_cast<std::uint32_t>(options_.step >> 32);
  vk::upload(context, state_, 0, std::as_bytes(std::span(&state, 1)));
  const vk::Buffer* buffers[] = {&arena_, &inputs_, &state_};
  recording_ = std::make_unique<Recording>(context, pipelines_, plan_, buffers,
                                           Recording::Options{.timestamps = options.timestamps});
}

Execution::~Execution() = default;

void Execution::lower(const graph::Ir& ir, const std::vector<graph::ValueId>& outputs) {
  plan::ProgramBuilder builder(options_.target.value_or(context_.target()), options_.lowering);
  const plan::BufferId inputs = builder.buffer("inputs");
  builder.stores().key_noise(builder.place_bytes("state", sizeof(state::StepState), {builder.buffer("state"), 0}));
  builder.stores().set(options_.rounding, options_.overflow);
  const std::uint64_t alignment = builder.target().offset_alignment;
  const std::uint64_t guard = round_up(options_.guard_bytes, alignment);
  for (graph::ValueId id = 0; id < ir.values.size(); ++id) {
    const graph::Value& value = ir.values[id];
    types_[id] = value.type;
    if (value.origin == graph::Origin::node) continue;
    const std::uint64_t bytes = plan::byte_size(value.type);
    const std::uint64_t offset = in_part(builder.target(), input_bytes_ + guard, bytes);
    tensors_[id] = builder.place(value.name, value.type, {inputs, offset});
    builder.values().bind(id, tensors_[id]);
    input_bytes_ = offset + round_up(bytes, alignment) + guard;
  }
  for (const graph::NodeId node : passes::needed_nodes(ir, outputs)) builder.lower(ir, ir.nodes[node]);
  for (const graph::ValueId output : outputs) tensors_[output] = builder.keep(builder.values().tensor_of(ir, output));
  plan::ArenaOptions arena = plan::arena_options(builder.target());
  arena.guard_bytes = options_.guard_bytes;
  arena.reuse = options_.reuse;
  plan_ = plan::make_plan(builder.finish(), arena);
}

const plan::ProgramTensor& Execution::tensor(graph::ValueId value) const {
  return plan_.program.tensors.at(tensors_.at(value));
}

const vk::Buffer& Execution::buffer_of(const plan::ProgramTensor& tensor) const {
  return tensor.region.buffer == plan::arena_buffer ? arena_ : inputs_;
}

void Execution::write(graph::ValueId value, std::span<const std::byte> bytes) {
  vk::upload(context_, buffer_of(tensor(value)), tensor(value).region.offset, bytes);
}

void Execution::set(graph::ValueId value, std::span<const float> values) {
  write(value, plan::to_memory(types_.at(value), values));
}

void Execution::set(graph::ValueId value, std::span<const std::uint32_t> values) {
  write(value, plan::to_memory(types_.at(value), values));
}

void Execution::run() {
  recording_->run(timeline_);
}

std::vector<std::byte> Execution::memory(graph::ValueId value) {
  std::vector<std::byte> bytes(tensor(value).bytes);
  vk::download(context_, buffer_of(tensor(value)), tensor(value).region.offset, bytes);
  return bytes;
}

std::vector<float> Execution::floats(graph::ValueId value) {
  return plan::floats_from_memory(types_.at(value), memory(value));
}

std::vector<std::uint32_t> Execution::words(graph::ValueId value) {
  return plan::words_from_memory(types_.at(value), memory(value));
}

bool Execution::guards_intact() {
  const std::vector<plan::Lifetime> lifetimes = plan::lifetimes(plan_.program);
  for (const vk::Buffer* buffer : {&arena_, &inputs_}) {
    std::vector<std::byte> bytes(buffer->bytes());
    vk::download(context_, *buffer, 0, bytes);
    for (plan::TensorId id = 0; id < lifetimes.size(); ++id) {
      const plan::ProgramTensor& tensor = plan_.program.tensors[id];
      const bool placed = lifetimes[id].used || tensor.region.buffer != plan::arena_buffer;
      if (id == plan_.program.noise_key) continue;
      const bool here = placed && &buffer_of(tensor) == buffer;
      const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(tensor.region.offset);
      if (here) std::fill_n(begin, tensor.bytes, std::byte{0xFF});
    }
    if (!std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0xFF}; })) return false;
  }
  return true;
}

}  // namespace halfstep::step
