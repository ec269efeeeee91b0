#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Moves the averages of the weights, which are f32, towards the weights by a share of the way, unless the step
// overflowed or their tensor was left out. A weight that stands still is its own average, to the bit.
#define NEAREST_ONLY
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "step/step_state.glsl"
#define SCALES_CONSTANT 1
#define SCALES_BINDING 3
#include "step/block_scales.glsl"

layout(push_constant) uniform Push {
  uint first_quad;  // of the bound range, counted over all parameters
  uint quads;
  float share;
};
layout(std430, binding = 0) readonly buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Weights { QUAD weights[]; };
layout(std430, binding = 2) buffer Averages { vec4 averages[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads || state.overflow != 0u || is_skipped(first_quad + i)) return;
  averages[i] += share * (from_quad(weights[i]) - averages[i]);
}
