#version 440
#extension GL_GOOGLE_include_directive : require
// Assigns every state its next value, unless the step overflowed.
#include "common/indexing.glsl"
#include "step/step_state.glsl"

layout(push_constant) uniform Push { uint quads; };
layout(std430, binding = 0) readonly buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Next { vec4 next[]; };
layout(std430, binding = 2) writeonly buffer States { vec4 states[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads || state.overflow != 0u) return;
  states[i] = next[i];
}
