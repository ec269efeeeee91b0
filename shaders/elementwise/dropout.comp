#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"
#include "common/rng.glsl"
#include "step/step_state.glsl"

// Elements are dropped if their word of noise is below `dropped`, and multiplied by `factor` otherwise.
layout(push_constant) uniform Push {
  uint quads;
  uint stream;
  uint dropped;
  float factor;
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer State { StepState state; };
layout(std430, binding = 2) writeonly buffer Y { QUAD y[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uvec4 noise = quad_noise(uvec2(state.seed_low, state.seed_high), state.attempted, stream, i);
  bvec4 kept = greaterThanEqual(noise, uvec4(dropped));
  y[i] = to_quad(mix(vec4(0.0), from_quad(x[i]) * factor, kept), i);
}
