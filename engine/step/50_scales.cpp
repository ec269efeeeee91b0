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

/// Finds the largest magnitude of each block.
plan::TensorId find_largest(const StageContext& step) {
  struct Push {
    std::uint32_t first_block;
    std::uint32_t count;
  };
  constexpr std::uint64_t block_quads = scales::block_elements / 4;
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = flat_local_size(builder.target());
  const auto blocks = static_cast<std::int64_t>(scales::blocks(step.layout.parameters));
  const plan::TensorId largest = builder.tensor("largest gradients", {DType::u32, {blocks}});
  for (const Chunk& chunk : step.trained_chunks(step.gradient_quad_bytes())) {
    const Push push{static_cast<std::uint32_t>(chunk.first / block_quads),
                    static_cast<std::uint32_t>(chunk.count / block_quads)};
    builder.dispatch({.label = "check",
                      .shader = fmt::format("largest.{}", storage(builder.target(), step.weights.compute)),
                      .constants = {local_size},
                      .push = plan::push_bytes(push),
                      .operands = {{step.state, plan::Access::read_write},
                                   {step.gradients(chunk), plan::Access::read},
                                   {largest, chunk.first == 0 ? plan::Access::write : plan::Access::read_write}},
                      .groups = plan::groups_for(builder.target(), push.count, local_size)});
  }
  return largest;
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
  const plan::TensorId largest = find_largest(step);
  const plan::TensorId places = builder.place_bytes("tensors", tensors * sizeof(scales::Tensor),
                                                    {buffers::gradient_scales, scales::tensors_offset});
  builder.dispatch(
      {.label = "choose scales",
       .shader = "choose_scales",
       .constants = {local_size},
       .push = plan::push_bytes(static_cast<std::uint32_t>(tensors)),
       .operands = {{step.state, plan::Access::read_write},
                    {largest, plan::Access::read},
                    {places, plan::Access::read},
                    {builder.stores().scales().value(), plan::Access::read_write},
                    {place_blocks(step), plan::Access::write}},
       .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(tensors * local_size), local_size),
       .rounds = 2 * (plan::divided_up(scales::most_blocks(step.layout.parameters), local_size) + 1)});
}

}  // namespace halfstep::step
