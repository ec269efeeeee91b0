// Must match engine/state/step_state.h, which documents the fields, by the rules of std430 and of std140: no arrays.
#ifndef HALFSTEP_STEP_STATE
#define HALFSTEP_STEP_STATE

// Bits of StepState::overflow.
const uint NOT_FINITE = 1u;  // a gradient is not: the step is skipped
const uint STOPPED = 2u;     // the recorder has found what training stops at: the step leaves everything as it was

struct StepState {
  vec4 loss_scale;  // x; the rest stays zero
  float rate;
  uint overflow;
  uint good_steps;
  uint applied;
  uvec2 attempted;
  uint skipped;
  float unused_low;
  float unused_high;
  uint seed_low;
  uint seed_high;
  float clip;
  uint tensor_updates_skipped;
  int rate_offset;
  float gradient_norm;
};

// One more update than `updates`, of which no more are counted than there is room for.
uint one_more(uint updates) { return max(updates + 1u, updates); }

// The entry of a schedule of `rates` after so many updates.
uint schedule_entry(uint updates, int offset, uint rates) {
  uint behind = uint(max(-offset, 0));
  uint entry = updates < behind ? 0u : min(updates - behind, rates);
  return min(entry + uint(max(offset, 0)), rates - 1u);
}

#endif
