#include <fmt/format.h>

#include "step/stages.h"

namespace halfstep::step {

void accumulate_gradients(plan::ProgramBuilder& builder, const state::ParameterLayout& layout,
                          const state::WeightForm& form, const ParameterBuffers& buffers, MicroBatch micro_batch) {
  struct Push {
    std::uint32_t first_quad;
    std::uint32_t quads;
    float count;
  };
  const bool first = micro_batch.index == 0;
  const bool last = micro_batch.index + 1 == micro_batch.count;
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(form.compute));
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Stretch& stretch : cut(builder.target(), layout.trained_elements() / 4, 16)) {
    const auto elements = static_cast<std::int64_t>(4 * stretch.count);
    const plan::TensorId gradients =
        builder.place("gradients", {form.compute, {elements}}, {buffers.gradients, stretch.first * quad_bytes});
    const plan::TensorId sums =
        builder.place("gradient sums", {DType::f32, {elements}}, {buffers.gradient_sums, stretch.first * 16});
    builder.dispatch({.label = "accumulate",
                      .shader = fmt::format("accumulate.{}", storage(builder.target(), form.compute)),
                      .constants = {local_size, first, last, form.scaled},
                      .push = plan::push_bytes(Push{static_cast<std::uint32_t>(stretch.first),
                                                    static_cast<std::uint32_t>(stretch.count),
                                                    static_cast<float>(micro_batch.count)}),
                      .operands = {{gradients, last ? plan::Access::read_write : plan::Access::read},
                                   {sums, first ? plan::Access::write : plan::Access::read_write}},
                      .groups = plan::groups_for(static_cast<std::int64_t>(stretch.count), local_size)});
  }
}

}  // namespace halfstep::step
