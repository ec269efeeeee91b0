#include <fmt/format.h>

#include "step/stages.h"

namespace halfstep::step {

void average_weights(plan::ProgramBuilder& builder, plan::TensorId state, const state::ParameterLayout& layout,
                     const state::WeightForm& form, const ParameterBuffers& buffers, float decay) {
  struct Push {
    std::uint32_t first_quad;
    std::uint32_t quads;
    float share;
  };
  const DType kept = form.master ? DType::f32 : form.compute;
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(kept));
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Stretch& stretch : cut(builder.target(), layout.trained_elements() / 4, 16)) {
    const plan::TensorId weights =
        builder.place_bytes("weights", stretch.count * quad_bytes, {buffers.masters, stretch.first * quad_bytes});
    const plan::TensorId averages =
        builder.place_bytes("averages", stretch.count * 16, {buffers.averages, stretch.first * 16});
    builder.dispatch({.label = "average",
                      .shader = fmt::format("average.{}", storage(builder.target(), kept)),
                      .constants = {local_size, form.scaled},
                      .push = plan::push_bytes(Push{static_cast<std::uint32_t>(stretch.first),
                                                    static_cast<std::uint32_t>(stretch.count), 1 - decay}),
                      .operands = {{state, plan::Access::read},
                                   {weights, plan::Access::read},
                                   {averages, plan::Access::read_write},
                                   read_blocks(builder, layout, form, buffers, weights)},
                      .groups = plan::groups_for(static_cast<std::int64_t>(stretch.count), local_size)});
  }
}

}  // namespace halfstep::step
