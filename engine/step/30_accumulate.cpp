#include <fmt/format.h>

#include "step/stages.h"

namespace halfstep::step {

void accumulate_gradients(const StageContext& step) {
  const auto count = static_cast<std::uint32_t>(step.options.accumulate);
  if (count == 1) return;
  struct Push {
    std::uint32_t first_quad;
    std::uint32_t quads;
    float count;
  };
  plan::ProgramBuilder& builder = step.builder;
  const DType stored = step.weights.compute;
  const bool first = step.micro_batch == 0;
  const bool last = step.micro_batch + 1 == count;
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Chunk& chunk : step.trained_chunks(16)) {
    const auto elements = static_cast<std::int64_t>(4 * chunk.count);
    const plan::TensorId gradients = builder.place(
        "gradients", {stored, {elements}}, {state::buffers::gradients, chunk.first * step.gradient_quad_bytes()});
    const plan::TensorId sums =
        builder.place("gradient sums", {DType::f32, {elements}}, {state::buffers::gradient_sums, chunk.first * 16});
    builder.dispatch(
        {.label = "accumulate",
         .shader = fmt::format("accumulate.{}", storage(builder.target(), stored)),
         .constants = {local_size, first, last, step.weights.scaled},
         .push = plan::push_bytes(Push{static_cast<std::uint32_t>(chunk.first), static_cast<std::uint32_t>(chunk.count),
                                       static_cast<float>(count)}),
         .operands = {{gradients, last ? plan::Access::read_write : plan::Access::read},
                      {sums, first ? plan::Access::write : plan::Access::read_write}},
         .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(chunk.count), local_size)});
  }
}

}  // namespace halfstep::step
