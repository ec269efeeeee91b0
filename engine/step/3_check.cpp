#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "step/stages.h"

namespace halfstep::step {

void check_gradients(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                     const state::WeightForm& form, const ParameterBuffers& buffers) {
  constexpr std::uint32_t quads_each = 8;  // as in check.comp
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(form.compute));
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Stretch& stretch : cut(builder.target(), layout.trained_elements() / 4, quad_bytes)) {
    const plan::TensorId gradients =
        builder.place_bytes("gradients", stretch.count * quad_bytes, {buffers.gradients, stretch.first * quad_bytes});
    const auto invocations = static_cast<std::int64_t>((stretch.count + quads_each - 1) / quads_each);
    builder.dispatch({.label = "check",
                      .shader = fmt::format("check.{}", storage(builder.target(), form.compute)),
                      .constants = {local_size},
                      .push = plan::push_bytes(static_cast<std::uint32_t>(stretch.count)),
                      .operands = {{state, plan::Access::read_write}, {gradients, plan::Access::read}},
                      .groups = plan::groups_for(invocations, local_size)});
  }
}

void clip_gradients(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                    const state::WeightForm& form, const ParameterBuffers& buffers, float limit) {
  struct SquaresPush {
    std::uint32_t quads;
    std::uint32_t slices;
    std::uint32_t first_sum;
    std::uint32_t first_quad;
  };
  struct ClipPush {
    std::uint32_t sums;
    float limit;
  };
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(form.compute));
  const std::uint32_t local_size = flat_local_size(builder.target());
  const std::int64_t most_rounds = std::int64_t{builder.target().max_rounds} - 1;
  const std::vector<Stretch> stretches = cut(builder.target(), layout.trained_elements() / 4, quad_bytes);
  std::uint64_t longest = 0;
  for (const Stretch& stretch : stretches) longest = std::max(longest, stretch.count);
  const auto least = static_cast<std::uint32_t>(plan::divided_up(static_cast<std::int64_t>(longest), most_rounds));
  const std::uint32_t slices = std::max(builder.target().wanted_groups * local_size, least);
  const auto sums = static_cast<std::uint32_t>(slices * stretches.size());
  const plan::TensorId partial = builder.tensor("gradient squares", {DType::f32, {std::int64_t{sums} * 4}});
  std::uint32_t first_sum = 0;
  for (const Stretch& stretch : stretches) {
    const plan::TensorId gradients =
        builder.place_bytes("gradients", stretch.count * quad_bytes, {buffers.gradients, stretch.first * quad_bytes});
    builder.dispatch({.label = "squares",
                      .shader = fmt::format("squares.{}", storage(builder.target(), form.compute)),
                      .constants = {local_size, form.scaled},
                      .push = plan::push_bytes(SquaresPush{static_cast<std::uint32_t>(stretch.count), slices, first_sum,
                                                           static_cast<std::uint32_t>(stretch.first)}),
                      .operands = {{gradients, plan::Access::read},
                                   {partial, first_sum == 0 ? plan::Access::write : plan::Access::read_write},
                                   read_blocks(builder, layout, form, buffers, gradients)},
                      .groups = plan::groups_for(slices, local_size),
                      .rounds = plan::divided_up(static_cast<std::int64_t>(stretch.count), slices) + 1});
    first_sum += slices;
  }
  builder.dispatch({.label = "clip",
                    .shader = "clip",
                    .constants = {local_size},
                    .push = plan::push_bytes(ClipPush{sums, limit}),
                    .operands = {{state, plan::Access::read_write}, {partial, plan::Access::read}},
                    .rounds = plan::divided_up(sums, local_size) + 1 + std::bit_width(local_size) + 1});
}

}  // namespace halfstep::step
