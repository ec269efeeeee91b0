// The twin of engine/step/step_state.h, where the fields are explained.
#ifndef HALFSTEP_STEP_STATE
#define HALFSTEP_STEP_STATE

struct StepState {
  vec4 loss_scale;  // x; the rest stays zero
  float rate;
  uint overflow;
  uint good_steps;
  uint applied;
  uvec2 attempted;
  uint skipped;
  float beta1_power;
  float beta2_power;
  uint seed_low;
  uint seed_high;
  float clip;
  uint left_out;
};

#endif
