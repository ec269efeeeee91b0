#include <fmt/format.h>

#include <cmath>

#include "optim/rule.h"
#include "step/stages.h"

namespace halfstep::step {
namespace {

/// Limits the weights of an update that are in `buffer`, from quad `first` on.
void limit(const StageContext& step, plan::BufferId buffer, DType dtype, std::uint64_t first, const Chunk& quads) {
  struct Push {
    std::uint32_t first_quad;
    std::uint32_t quads;
    float most;
  };
  plan::ProgramBuilder& builder = step.builder;
  const std::uint64_t quad_bytes = 4 * static_cast<std::uint64_t>(bytes(dtype));
  const std::uint32_t local_size = flat_local_size(builder.target());
  const plan::TensorId weights = builder.place_bytes("weights", quads.count * quad_bytes, {buffer, first * quad_bytes});
  builder.dispatch({.label = "limit",
                    .shader = fmt::format("limit.{}", storage(builder.target(), dtype)),
                    .constants = {local_size, step.weights.scaled},
                    .push = plan::push_bytes(Push{static_cast<std::uint32_t>(quads.first),
                                                  static_cast<std::uint32_t>(quads.count), step.options.weight_limit}),
                    .operands = {{step.state, plan::Access::read},
                                 {weights, plan::Access::read_write},
                                 read_blocks(step, step.state)},
                    .groups = plan::groups_for(builder.target(), static_cast<std::int64_t>(quads.count), local_size)});
}

}  // namespace

void limit_weights(const StageContext& step) {
  const float most = step.options.weight_limit;
  optim::require(most >= 0 && std::isfinite(most), "weight_limit", "0 or more", most);
  if (most == 0) return;
  step.builder.stores().set(Rounding::nearest, step.options.precision.overflow);
  const DType updated = step.weights.master ? DType::f32 : step.weights.compute;
  const plan::BufferId bound[] = {state::buffers::weights, step.updated_weights()};
  for (const Update& update : step.updates(bound)) {
    limit(step, step.updated_weights(), updated, update.first_master, update.quads);
    if (step.weights.copy) limit(step, state::buffers::weights, step.weights.compute, update.quads.first, update.quads);
  }
}

}  // namespace halfstep::step
