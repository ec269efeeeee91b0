#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/indexing.glsl"
#include "common/precision.glsl"
#include "common/broadcast.glsl"

// A tensor repeated along the axes it lacks, times a factor: the gradient of a sum or mean.
layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) writeonly buffer Y { QUAD y[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 v = from_quad(a[operands_of(i).x]);
  if (SPREAD_A) v = v.xxxx;
  y[i] = to_quad(clear_pad(v * factor, i), i);
}
