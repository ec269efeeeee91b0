#include <algorithm>
#include <bit>

#include "state/gradient_scales.h"
#include "step/stages.h"

namespace halfstep::step {

void clip_gradients(const StageContext& step) {
  if (!step.found.norms) return;
  struct SumPush {
    std::uint32_t blocks;
    std::uint32_t slices;
  };
  struct ClipPush {
    std::uint32_t slices;
    float limit;
  };
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = std::bit_floor(flat_local_size(builder.target()));  // for the butterfly of clip.comp
  const std::int64_t most_rounds = std::int64_t{builder.target().max_rounds} - 1;
  const auto blocks = static_cast<std::uint32_t>(state::gradient_scales::blocks(step.layout.parameters));
  const auto least = static_cast<std::uint32_t>(plan::divided_up(blocks, most_rounds));
  const std::uint32_t slices = std::min(blocks, std::max(builder.target().wanted_groups * local_size, least));
  const plan::TensorId norms = builder.tensor("norms of slices", {DType::f32, {std::int64_t{slices}}});
  builder.dispatch({.label = "clip",
                    .shader = "sum_squares",
                    .constants = {local_size, step.weights.scaled},
                    .push = plan::push_bytes(SumPush{blocks, slices}),
                    .operands = {{*step.found.norms, plan::Access::read},
                                 {norms, plan::Access::write},
                                 read_blocks(step, *step.found.norms)},
                    .groups = plan::groups_for(builder.target(), slices, local_size),
                    .rounds = plan::divided_up(blocks, slices) + 1});
  builder.dispatch({.label = "clip",
                    .shader = "clip",
                    .constants = {local_size},
                    .push = plan::push_bytes(ClipPush{slices, step.options.clip_norm}),
                    .operands = {{step.state, plan::Access::read_write}, {norms, plan::Access::read}},
                    .rounds = plan::divided_up(slices, local_size) + 1 + 2 * (std::bit_width(local_size) + 1)});
}

}  // namespace halfstep::step
