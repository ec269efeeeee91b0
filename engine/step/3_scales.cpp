#include <fmt/format.h>

#include "state/gradient_scales.h"
#include "step/stages.h"

namespace halfstep::step {

namespace {

plan::TensorId place_blocks(plan::ProgramBuilder& builder, plan::BufferId scales,
                            const state::ParameterLayout& layout) {
  const std::uint64_t bytes = state::gradient_scales::blocks(layout) * sizeof(state::gradient_scales::Block);
  return builder.place_bytes("blocks", bytes, {scales, state::gradient_scales::blocks_offset});
}

/// Finds the largest magnitude of each block.
plan::TensorId find_largest(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                            const state::WeightForm& form, const ParameterBuffers& buffers) {
  struct Push {
    std::uint32_t first_block;
    std::uint32_t count;
  };
  constexpr std::uint64_t block_quads = state::gradient_scales::block_elements / 4;
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(form.compute));
  const std::uint32_t local_size = flat_local_size(builder.target());
  const auto blocks = static_cast<std::int64_t>(state::gradient_scales::blocks(layout));
  const plan::TensorId largest = builder.tensor("largest gradients", {DType::u32, {blocks}});
  for (const Stretch& stretch : cut(builder.target(), layout.trained_elements() / 4, quad_bytes)) {
    const plan::TensorId gradients =
        builder.place_bytes("gradients", stretch.count * quad_bytes, {buffers.gradients, stretch.first * quad_bytes});
    const Push push{static_cast<std::uint32_t>(stretch.first / block_quads),
                    static_cast<std::uint32_t>(stretch.count / block_quads)};
    builder.dispatch({.label = "check",
                      .shader = fmt::format("largest.{}", storage(builder.target(), form.compute)),
                      .constants = {local_size},
                      .push = plan::push_bytes(push),
                      .operands = {{state, plan::Access::read_write},
                                   {gradients, plan::Access::read},
                                   {largest, stretch.first == 0 ? plan::Access::write : plan::Access::read_write}},
                      .groups = plan::groups_for(push.count, local_size)});
  }
  return largest;
}

}  // namespace

plan::Operand read_blocks(plan::ProgramBuilder& builder, const state::ParameterLayout& layout,
                          const state::WeightForm& form, const ParameterBuffers& buffers, plan::TensorId other) {
  return {form.scaled ? place_blocks(builder, buffers.scales, layout) : other, plan::Access::read};
}

void choose_scales(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                   const state::WeightForm& form, const ParameterBuffers& buffers) {
  const std::uint64_t tensors = state::gradient_scales::tensors(layout).size();
  const std::uint32_t local_size = flat_local_size(builder.target());
  const plan::TensorId largest = find_largest(builder, state, layout, form, buffers);
  const plan::TensorId places = builder.place_bytes("tensors", tensors * sizeof(state::gradient_scales::Tensor),
                                                    {buffers.scales, state::gradient_scales::tensors_offset});
  builder.dispatch({.label = "choose scales",
                    .shader = "choose_scales",
                    .constants = {local_size},
                    .push = {},
                    .operands = {{state, plan::Access::read_write},
                                 {largest, plan::Access::read},
                                 {places, plan::Access::read},
                                 {builder.scales().value(), plan::Access::read_write},
                                 {place_blocks(builder, buffers.scales, layout), plan::Access::write}},
                    .groups = {static_cast<std::uint32_t>(tensors), 1, 1},
                    .rounds = 2 * (plan::divided_up(state::gradient_scales::most_blocks(layout), local_size) + 1)});
}

}  // namespace halfstep::step
