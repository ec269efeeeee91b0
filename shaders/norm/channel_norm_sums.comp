#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/channel_norm.glsl"
#include "common/precision.glsl"

// The sums of dy and of dy times the normalised x over a slice.
READ_STORED(0, X, x)
READ_STORED(1, DY, dy)
layout(std430, binding = 2) readonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 3) writeonly buffer Sums { vec4 sums[]; };

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Slice s = slice_of(invocation);
  uint end = slice_end(s);
  vec4 mean = statistics[plane_of(s)];
  vec4 total = vec4(0.0);
  vec4 along = vec4(0.0);
  for (uint i = slice_begin(s); i < end; i += QUADS) {
    vec4 gradient = dy_at(i);
    total += gradient;
    along += gradient * (x_at(i) - mean);
  }
  uint plane = partial_plane_of(s);
  sums[plane] = total;
  sums[plane + QUADS] = along * statistics[plane_of(s) + QUADS];
}
