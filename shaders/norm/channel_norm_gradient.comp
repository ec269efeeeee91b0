#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/channel_norm.glsl"
#include "common/precision.glsl"

// dx = inverse std * (weight dy - mean of that - normalised x * mean of that times normalised x)
// SUMS tells whether `means` holds sums over the rows, not yet multiplied by the weight.
layout(constant_id = 2) const bool SUMS = true;
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer DY { QUAD dy[]; };
layout(std430, binding = 2) readonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 3) readonly buffer Weight { QUAD weight[]; };
layout(std430, binding = 4) readonly buffer Means { vec4 means[]; };
layout(std430, binding = 5) writeonly buffer DX { QUAD dx[]; };

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Slice s = slice_of(invocation);
  uint end = slice_end(s);
  uint plane = plane_of(s);
  vec4 mean = statistics[plane];
  vec4 inverse = statistics[plane + QUADS];
  vec4 factor = inverse * from_quad(weight[s.channel]);
  vec4 share = SUMS ? factor / float(rows) : inverse;
  vec4 offset = share * means[plane];
  vec4 along = share * inverse * means[plane + QUADS];
  for (uint i = slice_begin(s); i < end; i += QUADS) {
    dx[i] = to_quad(factor * from_quad(dy[i]) - offset - along * (from_quad(x[i]) - mean), i);
  }
}
