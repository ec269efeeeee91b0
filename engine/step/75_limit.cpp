#include <cmath>

#include "optim/rule.h"
#include "plan/pointwise.h"
#include "step/stages.h"

namespace halfstep::step {
namespace {

/// Limits the numbers of a chunk of `buffer` to [-most, most], in place.
void limit(const StageContext& step, plan::BufferId buffer, DType dtype, const Chunk& chunk, float most) {
  const TensorType type{dtype, {static_cast<std::int64_t>(4 * chunk.count)}};
  const plan::Region region{buffer, chunk.first * 4 * static_cast<std::uint64_t>(bytes(dtype))};
  plan::Expression limited;
  limited.layout = plan::layout(type.shape);
  limited.reads = {plan::Reading{}};
  limited.value = 0;
  for (int side = 0; side < 2; ++side) {
    limited.value = limited.add({plan::Op::at_most, limited.value, limited.value, most});
    limited.value = limited.add({plan::Op::scale, limited.value, limited.value, -1});
  }
  plan::Dispatch dispatch =
      plan::pointwise(std::move(limited), {{step.builder.place("limited weights", type, region), plan::Access::write},
                                           {step.builder.place("weights", type, region), plan::Access::read}});
  dispatch.label = "limit";
  step.builder.dispatch(std::move(dispatch));
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
    limit(step, step.updated_weights(), updated, {update.first_master, update.quads.count}, most);
    if (step.weights.copy) limit(step, state::buffers::weights, step.weights.compute, update.quads, most);
  }
}

}  // namespace halfstep::step
