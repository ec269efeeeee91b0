#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Keeps the next value of a state, which operators computed in f32.
#include "optim/update.glsl"

layout(constant_id = 7) const uint STATE = 0u;
layout(constant_id = 8) const uint STATES = 1u;
layout(std430, binding = 6) readonly buffer Next { vec4 next[]; };
layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
};

void main() {
  uint i = linear_invocation();
  if (i >= quads || !is_updated(first_quad + i)) return;
  uint place = STATES * i + STATE;
  store_moment(place, first_moment + place, next[i]);
}
