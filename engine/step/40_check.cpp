#include <fmt/format.h>

#include "step/stages.h"

namespace halfstep::step {

void check_gradients(const StageContext& step) {
  if (step.weights.scaled) return;
  constexpr std::uint32_t quads_each = 8;  // as in check.comp
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = flat_local_size(builder.target());
  for (const Chunk& chunk : step.trained_chunks(step.gradient_quad_bytes())) {
    const auto invocations = static_cast<std::int64_t>((chunk.count + quads_each - 1) / quads_each);
    builder.dispatch({.label = "check",
                      .shader = fmt::format("check.{}", storage(builder.target(), step.weights.compute)),
                      .constants = {local_size},
                      .push = plan::push_bytes(static_cast<std::uint32_t>(chunk.count)),
                      .operands = {{step.state, plan::Access::read_write}, {step.gradients(chunk), plan::Access::read}},
                      .groups = plan::groups_for(builder.target(), invocations, local_size)});
  }
}

}  // namespace halfstep::step
