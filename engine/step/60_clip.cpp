#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "optim/rule.h"
#include "step/stages.h"

namespace halfstep::step {

void clip_gradients(const StageContext& step) {
  const float limit = step.options.clip_norm;
  optim::require(limit >= 0 && std::isfinite(limit), "clip_norm", "0 or more", limit);
  if (limit == 0 && !step.options.gradient_norm) return;
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
  plan::ProgramBuilder& builder = step.builder;
  const std::uint32_t local_size = flat_local_size(builder.target());
  const std::int64_t most_rounds = std::int64_t{builder.target().max_rounds} - 1;
  const std::vector<Chunk> chunks = step.trained_chunks(step.gradient_quad_bytes());
  std::uint64_t longest = 0;
  for (const Chunk& chunk : chunks) longest = std::max(longest, chunk.count);
  const auto least = static_cast<std::uint32_t>(plan::divided_up(static_cast<std::int64_t>(longest), most_rounds));
  const std::uint32_t slices = std::max(builder.target().wanted_groups * local_size, least);
  const auto sums = static_cast<std::uint32_t>(slices * chunks.size());
  const plan::TensorId partial = builder.tensor("gradient squares", {DType::f32, {std::int64_t{sums} * 4}});
  std::uint32_t first_sum = 0;
  for (const Chunk& chunk : chunks) {
    const plan::TensorId gradients = step.gradients(chunk);
    builder.dispatch({.label = "squares",
                      .shader = fmt::format("squares.{}", storage(builder.target(), step.weights.compute)),
                      .constants = {local_size, step.weights.scaled},
                      .push = plan::push_bytes(SquaresPush{static_cast<std::uint32_t>(chunk.count), slices, first_sum,
                                                           static_cast<std::uint32_t>(chunk.first)}),
                      .operands = {{gradients, plan::Access::read},
                                   {partial, first_sum == 0 ? plan::Access::write : plan::Access::read_write},
                                   read_blocks(step, gradients)},
                      .groups = plan::groups_for(builder.target(), slices, local_size),
                      .rounds = plan::divided_up(static_cast<std::int64_t>(chunk.count), slices) + 1});
    first_sum += slices;
  }
  builder.dispatch({.label = "clip",
                    .shader = "clip",
                    .constants = {local_size},
                    .push = plan::push_bytes(ClipPush{sums, limit}),
                    .operands = {{step.state, plan::Access::read_write}, {partial, plan::Access::read}},
                    .rounds = plan::divided_up(sums, local_size) + 1 + std::bit_width(local_size) + 1});
}

}  // namespace halfstep::step
