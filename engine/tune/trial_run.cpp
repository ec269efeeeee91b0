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

TrialRun::TrialRun(vk::Context& context, vk::Pipelines& pipelines, const plan::Target& target, const plan::Trial& trial)
    : context_(context), trial_(trial), timeline_(context) {
  lower(target);
  arena_ = vk::Buffer::in_parts(context, plan_.arena.bytes, "trial's workspace");
  operands_ = vk::Buffer(context, operand_bytes_, vk::Memory::device, "trial's operands");
  fill();
  const vk::Buffer* buffers[] = {&arena_, &operands_};
  recording_ = std::make_unique<step::Recording>(context, pipelines, plan_, buffers);
}

void TrialRun::lower(const plan::Target& target) {
  const DType partials = trial_.float16_partials ? DType::f16 : DType::f32;
  plan::ProgramBuilder builder(target, {.partials = {partials, partials}});
  const plan::BufferId buffer = builder.buffer("operands");
  const auto place = [&](const TensorType& type) {
    const plan::Region region{buffer, operand_bytes_};
    operand_bytes_ += round_up(plan::byte_size(type), target.offset_alignment);
    return builder.place("operand", type, region);
  };
  for (const TensorType& type : trial_.inputs) inputs_.push_back(place(type));
  output_ = place(trial_.output);
  plan::Lowering lowering(builder, "tune", inputs_, {output_});
  trial_.lower(lowering);
  plan::Program program = builder.finish();
  if (trial_.values.empty()) {
    // It is only timed. A kernel that is compiled for any sizes serves all problems of a program.
    for (plan::Dispatch& dispatch : program.dispatches) dispatch.push_is_known = false;
  }
  plan_ = plan::make_plan(std::move(program), plan::arena_options(target));
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
