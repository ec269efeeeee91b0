#include <fmt/format.h>

#include <cmath>

#include "optim/rule.h"
#include "step/stages.h"

namespace halfstep::step {

void square_gradients(const StageContext& step) {
  const float limit = step.options.clip_norm;
  optim::require(limit >= 0 && std::isfinite(limit), "clip_norm", "0 or more", limit);
  if (limit == 0 && !step.options.gradient_norm) return;
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = flat_local_size(builder.target());
  step.found.norms = place_found(step, "norms of blocks", DType::f32, state::exchange_places::norms(step.layout));
  for (const Blocks& blocks : blocks_of(step)) {
    builder.dispatch({.label = "squares",
                      .shader = fmt::format("squares.{}", storage(builder.target(), step.weights.compute)),
                      .constants = {local_size},
                      .push = plan::push_bytes(blocks.push),
                      .operands = {{blocks.gradients, plan::Access::read}, {*step.found.norms, blocks.access}},
                      .groups = plan::groups_for(builder.target(), blocks.push.count, local_size)});
  }
}

}  // namespace halfstep::step
