#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// One step of sphere tracing: each ray advances by the distance at its position. `rays` have the origin and the length
// within the unit cube, `states` the length so far, the last distance, and the least distance / length of all.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(std430, binding = 0) readonly buffer Rays { vec4 rays[]; };
layout(std430, binding = 1) readonly buffer Directions { vec4 directions[]; };
layout(std430, binding = 2) readonly buffer States { vec4 states[]; };
layout(std430, binding = 3) readonly buffer Distances { QUAD distances[]; };
layout(std430, binding = 4) writeonly buffer NextStates { vec4 next_states[]; };
layout(std430, binding = 5) writeonly buffer Positions { vec4 positions[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  vec4 ray = rays[i];
  vec4 state = states[i];
  float d = from_quad(distances[i]).x;
  float at = min(state.x + d, ray.w);
  next_states[i] = vec4(at, d, min(state.z, d / max(state.x, 0.02)), 0.0);
  positions[i] = vec4(ray.xyz + at * directions[i].xyz, 0.0);
}
