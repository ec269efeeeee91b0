#include "step/stages.h"

namespace halfstep::step {
namespace {

/// Copies the states' next values to where the host exchanges them, or back.
void copy_states(const StageContext& step, bool back) {
  for (const Chunk& chunk : step.state_chunks()) {
    const auto place = [&](const char* name, plan::Region region) {
      region.offset += chunk.first * 16;
      return step.builder.place_bytes(name, chunk.count * 16, region);
    };
    const plan::TensorId exchanged = place("exchanged states", step.exchanged_states());
    const plan::TensorId next = place("next states", step.next_states);
    step.builder.alias(back ? next : exchanged, back ? exchanged : next, "exchange states");
  }
}

}  // namespace

void offer_states(const StageContext& step) {
  if (step.options.ranks.exchange_gradients()) copy_states(step, false);
}

void take_exchanged(const StageContext& step) {
  if (!step.options.ranks.exchange_gradients()) return;
  const plan::BufferId bound[] = {state::buffers::gradients, state::buffers::exchange};
  for (const Update& update : step.updates(bound)) store_means(step, update.quads);
  copy_states(step, true);
}

}  // namespace halfstep::step
