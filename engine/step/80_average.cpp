#include <fmt/format.h>

#include "optim/rule.h"
#include "step/stages.h"

namespace halfstep::step {

void average_weights(const StageContext& step) {
  const float decay = step.options.ema_decay;
  optim::require(decay >= 0 && decay < 1, "ema_decay", "in [0, 1)", decay);
  if (decay == 0) return;
  struct Push {
    std::uint32_t first_quad;
    std::uint32_t quads;
    float new_weight;  // of the updated weight in the average
  };
  plan::ProgramBuilder& builder = step.builder;
  const DType kept = step.weights.master ? DType::f32 : step.weights.compute;
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(kept));
  const std::uint32_t local_size = flat_local_size(builder.target());
  const plan::BufferId bound[] = {step.updated_weights(), state::buffers::averages};
  for (const Chunk& chunk : step.trained_chunks(bound)) {
    const plan::TensorId weights =
        builder.place_bytes("weights", chunk.count * quad_bytes, {step.updated_weights(), chunk.first * quad_bytes});
    const plan::TensorId averages =
        builder.place_bytes("averages", chunk.count * 16, {state::buffers::averages, chunk.first * 16});
    builder.dispatch(
        {.label = "average",
         .shader = fmt::format("average.{}", storage(builder.target(), kept)),
         .constants = {local_size, step.weights.scaled},
         .push = plan::push_bytes(
             Push{static_cast<std::uint32_t>(chunk.first), static_cast<std::uint32_t>(chunk.count), 1 - decay}),
         .operands = {{step.state, plan::Access::read},
                      {weights, plan::Access::read},
                      {averages, plan::Access::read_write},
                      read_blocks(step, weights)},
         .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(chunk.count), local_size)});
  }
}

}  // namespace halfstep::step
