#include "train/planned.h"

#include <algorithm>
#include <map>

namespace halfstep::train {
namespace {

const char* name_of(plan::Phase phase) {
  switch (phase) {
    case plan::Phase::feed:
      return "feed";
    case plan::Phase::forward:
      return "forward";
    case plan::Phase::backward:
      return "backward";
    case plan::Phase::update:
      return "update";
  }
  return "";
}

/// Who wrote what last. A tensor of the arena is known by itself, as others take its place only when it is not needed
/// any more; elsewhere tensors may overlap.
class Writers {
 public:
  explicit Writers(const plan::Program& program) : program_(program) {}

  void wrote(plan::TensorId tensor, std::ptrdiff_t dispatch) {
    by_buffer_[program_.tensors[tensor].region.buffer].push_back({tensor, dispatch});
  }

  std::ptrdiff_t last_of(plan::TensorId tensor) const {
    const auto found = by_buffer_.find(program_.tensors[tensor].region.buffer);
    if (found == by_buffer_.end()) return -1;
    for (auto write = found->second.rbegin(); write != found->second.rend(); ++write) {
      if (overlap(write->tensor, tensor)) return write->dispatch;
    }
    return -1;
  }

 private:
  struct Write {
    plan::TensorId tensor;
    std::ptrdiff_t dispatch;
  };

  bool overlap(plan::TensorId a, plan::TensorId b) const {
    if (a == b) return true;
    const plan::ProgramTensor& first = program_.tensors[a];
    const plan::ProgramTensor& second = program_.tensors[b];
    return first.region.buffer != plan::arena_buffer && first.region.offset < second.region.offset + second.bytes &&
           second.region.offset < first.region.offset + first.bytes;
  }

  const plan::Program& program_;
  std::map<plan::BufferId, std::vector<Write>> by_buffer_;
};

}  // namespace

PlannedStep planned(const plan::Program& program) {
  PlannedStep step;
  for (const plan::ProgramTensor& tensor : program.tensors) {
    step.tensors.push_back(
        {tensor.name, tensor.type.dtype, tensor.type.shape, tensor.bytes, program.buffers[tensor.region.buffer]});
  }
  Writers writers(program);
  for (const plan::Dispatch& dispatch : program.dispatches) {
    const auto index = static_cast<std::ptrdiff_t>(step.dispatches.size());
    PlannedDispatch planned;
    planned.label = dispatch.label;
    planned.shader = dispatch.shader;
    planned.phase = name_of(dispatch.phase);
    planned.recomputed = dispatch.recomputed;
    planned.flops = dispatch.flops;
    planned.bytes = plan::bytes_touched(program, dispatch);
    for (const plan::Operand& operand : dispatch.operands) {
      if (operand.access == plan::Access::write) continue;
      planned.reads.push_back({operand.tensor, writers.last_of(operand.tensor)});
    }
    for (const plan::Operand& operand : dispatch.operands) {
      if (operand.access == plan::Access::read) continue;
      planned.writes.push_back(operand.tensor);
      writers.wrote(operand.tensor, index);
    }
    step.dispatches.push_back(std::move(planned));
  }
  return step;
}

}  // namespace halfstep::train
