#include "plan/conflicts.h"

#include <algorithm>

namespace halfstep::plan {
namespace {

/// Whether two tensors may share memory. The arena has no layout yet, so each of its tensors counts as separate.
bool share_memory(const Program& program, TensorId a, TensorId b) {
  if (a == b) return true;
  const ProgramTensor& first = program.tensors[a];
  const ProgramTensor& second = program.tensors[b];
  return first.region.buffer == second.region.buffer && first.region.buffer != arena_buffer &&
         first.region.offset < second.region.offset + second.bytes &&
         second.region.offset < first.region.offset + first.bytes;
}

}  // namespace

bool writes(const Operand& operand) {
  return operand.access != Access::read;
}

bool conflict(const Program& program, const Operand& a, const Operand& b) {
  return (writes(a) || writes(b)) && share_memory(program, a.tensor, b.tensor);
}

bool conflict(const Program& program, const Dispatch& a, const Dispatch& b) {
  return std::ranges::any_of(a.operands, [&](const Operand& first) {
    return std::ranges::any_of(b.operands, [&](const Operand& second) { return conflict(program, first, second); });
  });
}

bool stores_narrow(const Program& program, std::span<const Operand> operands) {
  return std::ranges::any_of(operands, [&](const Operand& operand) {
    return writes(operand) && is_narrow(program.tensors[operand.tensor].type.dtype);
  });
}

bool makes_narrow(const Program& program, const Dispatch& dispatch) {
  return (dispatch.expression && dispatch.expression->rounds()) || stores_narrow(program, dispatch.operands);
}

bool own_to_result(const Storing& storing) {
  return storing.stochastic || storing.scaled;
}

std::optional<Storing> common_storing(const Program& program, const Dispatch& producer, const Dispatch& consumer) {
  if (!makes_narrow(program, producer)) return consumer.storing;
  if (!makes_narrow(program, consumer)) return producer.storing;
  const bool alike = producer.storing.stochastic == consumer.storing.stochastic &&
                     producer.storing.saturate == consumer.storing.saturate &&
                     producer.storing.scaled == consumer.storing.scaled;
  return alike ? std::optional(consumer.storing) : std::nullopt;
}

}  // namespace halfstep::plan
