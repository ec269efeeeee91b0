#include <fmt/format.h>

#include "state/gradient_scales.h"
#include "step/stages.h"

namespace halfstep::step {

namespace {

namespace buffers = state::buffers;
namespace scales = state::gradient_scales;

plan::TensorId place_blocks(const StageContext& step) {
  const std::uint64_t bytes = scales::blocks(step.layout.parameters) * sizeof(scales::Block);
  return step.builder.place_bytes("blocks", bytes, {buffers::gradient_scales, scales::blocks_offset});
}

}  // namespace

plan::Operand read_blocks(const StageContext& step, plan::TensorId other) {
  return {step.weights.scaled ? place_blocks(step) : other, plan::Access::read};
}

void choose_scales(const StageContext& step) {
  if (!step.weights.scaled) return;
  plan::ProgramBuilder& builder = step.builder;
  const std::uint64_t tensors = scales::tensors(step.layout.parameters).size();
  const std::uint32_t local_size = flat_local_size(builder.target());
  const plan::TensorId places = builder.place_bytes("tensors", tensors * sizeof(scales::Tensor),
                                                    {buffers::gradient_scales, scales::tensors_offset});
  builder.dispatch(
      {.label = "choose scales",
       .shader = "choose_scales",
       .constants = {local_size},
       .push = plan::push_bytes(static_cast<std::uint32_t>(tensors)),
       .operands = {{step.state, plan::Access::read_write},
                    {*step.found.largest, plan::Access::read},
                    {places, plan::Access::read},
                    {builder.stores().scales().value(), plan::Access::read_write},
                    {place_blocks(step), plan::Access::write}},
       .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(tensors * local_size), local_size),
       .rounds = 2 * (plan::divided_up(scales::most_blocks(step.layout.parameters), local_size) + 1)});
}

}  // namespace halfstep::step
