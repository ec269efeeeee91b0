#include "step/stages.h"

namespace halfstep::step {

/// What was found lies where the host exchanges it. Of the StepState it changes StepState::overflow.
void share_findings(const StageContext& step) {
  if (!step.layout.shard) return;
  const auto state_at = [&](const char* name, plan::Region region) {
    return step.builder.place_bytes(name, sizeof(state::StepState), region);
  };
  const plan::Region shared{state::buffers::exchange, state::exchange_places::step_state(step.layout)};
  const plan::Region own{state::buffers::state, 0};
  step.builder.alias(state_at("shared state", shared), state_at("state", own), "share findings");
  step.builder.await();
  step.builder.alias(state_at("state", own), state_at("shared state", shared), "share findings");
}

}  // namespace halfstep::step
