#include <fmt/format.h>

#include "step/stages.h"

namespace halfstep::step {

void check_gradients(plan::ProgramBuilder& builder, plan::TensorId state, const ParameterLayout& layout,
                     const WeightForm& form, const ParameterBuffers& buffers) {
  constexpr std::uint32_t quads_each = 8;  // as in check.comp
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(form.compute));
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Stretch& stretch : cut(builder.target(), layout.padded_elements() / 4, quad_bytes)) {
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

}  // namespace halfstep::step
