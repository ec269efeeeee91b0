#include "tune/trial_run.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "plan/host_tensor.h"
#include "vk/command/transfer.h"

namespace halfstep::tune {
namespace {

/// Ordinary values in both f32 and f16, for inputs with arbitrary contents: some devices are faster on zeros.
constexpr std::uint32_t anything = 0x3A9C3A9C;
constexpr std::uint32_t poison = 0xFFFFFFFF;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

TrialProgram lowered(const plan::Trial& trial, const plan::Target& target) {
  const DType partials = trial.float16_partials ? DType::f16 : DType::f32;
  plan::ProgramBuilder builder(target, {.partials = {partials, partials}});
  const plan::BufferId buffer = builder.buffer("operands");
  TrialProgram made{};
  const auto place = [&](const TensorType& type) {
    const plan::Region region{buffer, made.operand_bytes};
    made.operand_bytes += round_up(plan::byte_size(type), target.offset_alignment);
    return builder.place("operand", type, region);
  };
  for (const TensorType& type : trial.inputs) made.inputs.push_back(place(type));
  made.output = place(trial.output);
  plan::Lowering lowering(builder, "tune", made.inputs, {made.output});
  trial.lower(lowering);
  made.program = builder.finish();
  if (trial.values.empty()) {
    // It is only timed. A kernel that is compiled for any sizes serves all problems of a program.
    for (plan::Dispatch& dispatch : made.program.dispatches) dispatch.push_is_known = false;
  }
  return made;
}

TrialRun::TrialRun(vk::Context& context, vk::Pipelines& pipelines, const plan::Target& target, const plan::Trial& trial)
    : TrialRun(context, pipelines, target, trial, lowered(trial, target)) {}

TrialRun::TrialRun(vk::Context& context, vk::Pipelines& pipelines, const plan::Target& target, const plan::Trial& trial,
                   TrialProgram made)
    : context_(context),
      trial_(trial),
      inputs_(std::move(made.inputs)),
      output_(made.output),
      plan_(plan::make_plan(std::move(made.program), plan::arena_options(target))),
      arena_(vk::Buffer::in_parts(context, plan_.arena.bytes, "trial's workspace")),
      operands_(context, made.operand_bytes, vk::Memory::device, "trial's operands"),
      timeline_(context) {
  fill();
  const vk::Buffer* buffers[] = {&arena_, &operands_};
  recording_ = std::make_unique<step::Recording>(context, pipelines, plan_, buffers);
}

void TrialRun::fill() {
  vk::fill(context_, operands_, 0, operands_.bytes() / 4 * 4, anything);
  const auto& tensors = plan_.program.tensors;
  for (std::size_t i = 0; i < trial_.values.size(); ++i) {
    vk::upload(context_, operands_, tensors[inputs_[i]].region.offset,
               plan::to_memory(trial_.inputs[i], trial_.values[i]));
  }
  vk::fill(context_, operands_, tensors[output_].region.offset, tensors[output_].bytes, poison);
}

bool TrialRun::takes(std::string_view kind, std::string_view name) const {
  return std::ranges::any_of(plan_.program.choices, [&](const plan::Choice& choice) {
    return choice.kind == kind && choice.candidates.front().name == name;
  });
}

double TrialRun::run() {
  const auto start = std::chrono::steady_clock::now();
  recording_->run(timeline_);
  const std::chrono::duration<double, std::micro> host = std::chrono::steady_clock::now() - start;
  return context_.capabilities().timestamp_bits == 0 ? host.count() : recording_->microseconds();
}

std::vector<float> TrialRun::result() {
  const plan::ProgramTensor& output = plan_.program.tensors[output_];
  std::vector<std::byte> bytes(output.bytes);
  vk::download(context_, operands_, output.region.offset, bytes);
  return plan::floats_from_memory(trial_.output, bytes);
}

}  // namespace halfstep::tune
