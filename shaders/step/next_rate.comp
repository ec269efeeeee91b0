#version 440
#extension GL_GOOGLE_include_directive : require
// The end of a step for an optimizer of a group, one invocation: its rate in the next step.
#include "optim/optimizer_state.glsl"
#include "step/step_state.glsl"

layout(local_size_x = 1) in;
layout(push_constant) uniform Push {
  uint optimizer;   // among those of groups
  uint first_rate;  // of its entries in the schedule
  uint rates;
};
layout(std430, binding = 0) buffer State {
  StepState state;
  OptimizerState optimizers[];
};
layout(std430, binding = 1) readonly buffer Schedule { float schedule[]; };

void main() {
  if (state.overflow != 0u) return;
  uint entry = schedule_entry(one_more(state.applied), state.rate_offset, rates);
  optimizers[optimizer].rate = schedule[first_rate + entry];
}
