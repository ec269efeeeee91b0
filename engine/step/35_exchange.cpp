#include "step/stages.h"

namespace halfstep::step {
namespace {

plan::TensorId states_at(const StageContext& step, const char* name, plan::Region region) {
  return step.builder.place_bytes(name, step.layout.states.padded_elements() * 4, region);
}

}  // namespace

void offer_states(const StageContext& step) {
  if (!step.options.ranks.exchange_gradients() || step.layout.states.padded_elements() == 0) return;
  step.builder.alias(states_at(step, "exchanged states", step.exchanged_states()),
                     states_at(step, "next states", step.next_states), "exchange states");
}

void take_exchanged(const StageContext& step) {
  if (!step.options.ranks.exchange_gradients()) return;
  for (const Update& update : step.updates(16)) store_means(step, update.quads);
  if (step.layout.states.padded_elements() == 0) return;
  step.builder.alias(states_at(step, "next states", step.next_states),
                     states_at(step, "exchanged states", step.exchanged_states()), "exchange states");
}

}  // namespace halfstep::step
