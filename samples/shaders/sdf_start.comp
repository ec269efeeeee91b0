#version 450
#extension GL_GOOGLE_include_directive : require
// The first position and state of rays: see sdf_march.comp.
#include "common/indexing.glsl"

layout(std430, binding = 0) readonly buffer Rays { vec4 rays[]; };
layout(std430, binding = 1) writeonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 2) writeonly buffer States { vec4 states[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  positions[i] = vec4(rays[i].xyz, 0.0);
  states[i] = vec4(0.0, 1.0, 1.0, 0.0);
}
