#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Limits weights to [-most, most], unless the step overflowed or their tensor was left out. NaN stays NaN.
#define NEAREST_ONLY
#include "common/math.glsl"
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "step/step_state.glsl"
#define SCALES_CONSTANT 1
#define SCALES_BINDING 2
#include "step/block_scales.glsl"

layout(push_constant) uniform Push {
  uint first_quad;  // of the bound range, counted over all parameters
  uint quads;
  float most;
};
layout(std430, binding = 0) readonly buffer State { StepState state; };
layout(std430, binding = 1) buffer Weights { QUAD weights[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads || state.overflow != 0u || is_skipped(first_quad + i)) return;
  vec4 v = from_quad(weights[i]);
  weights[i] = to_quad(mix(clamp(v, -most, most), v, is_nan(v)), first_quad + i);
}
