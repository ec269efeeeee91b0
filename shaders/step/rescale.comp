#version 440
#extension GL_GOOGLE_include_directive : require
// The end of a step, one invocation: the report, the counters, and the loss scale and rate of the next step.
#include "step/step_state.glsl"

layout(local_size_x = 1) in;
layout(constant_id = 1) const bool DYNAMIC = false;
layout(push_constant) uniform Push {
  float growth;
  float backoff;
  uint interval;
  float lowest;
  float highest;
  uint rates;  // entries of the schedule
};
struct Report {
  uvec2 attempted;
  uint applied;
  uint skipped;
  uint overflow;
  float loss_scale;
  float rate;
  float clip;
  uint tensor_updates_skipped;
  float gradient_norm;
  uint runs;
};
layout(std430, binding = 0) buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Schedule { float schedule[]; };
layout(std430, binding = 2) buffer ReportBuffer { Report report; };

// The next scale; good_steps becomes the number of consecutive finite steps with it.
float next_scale(StepState now, out uint good_steps) {
  float scale = now.loss_scale.x;
  good_steps = now.overflow != 0u ? 0u : now.good_steps + 1u;
  if (!DYNAMIC) return scale;
  if (now.overflow != 0u) return max(scale * backoff, lowest);
  if (good_steps < interval) return scale;
  good_steps = 0u;
  return min(scale * growth, highest);
}

void main() {
  StepState now = state;
  bool applied = now.overflow == 0u;
  StepState next = now;
  next.loss_scale.x = next_scale(now, next.good_steps);
  next.overflow = 0u;
  next.attempted.x = now.attempted.x + 1u;
  if (next.attempted.x == 0u) next.attempted.y++;
  if (applied) {
    next.applied = one_more(now.applied);
  } else {
    next.skipped = one_more(now.skipped);
  }
  next.rate = schedule[schedule_entry(next.applied, next.rate_offset, rates)];
  if ((now.overflow & STOPPED) != 0u) {
    next = now;
    next.overflow = 0u;
  }
  state = next;
  report = Report(next.attempted, next.applied, next.skipped, now.overflow, now.loss_scale.x, now.rate, now.clip,
                  now.tensor_updates_skipped, now.gradient_norm, report.runs + 1u);
}
