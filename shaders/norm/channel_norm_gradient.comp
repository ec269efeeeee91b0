#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/channel_norm.glsl"
#include "common/mixed_operands.glsl"

// dx = inverse std * (weight dy - mean of that - normalised x * mean of that times normalised x)
// SUMS tells whether `means` holds sums over the rows, not yet multiplied by the weight.
layout(constant_id = 2) const bool SUMS = true;
READ_STORED(0, X, x)
READ_STORED(1, DY, dy)
layout(std430, binding = 2) readonly buffer Statistics { vec4 statistics[]; };
READ_STORED(3, Weight, weight)
layout(std430, binding = 4) readonly buffer Means { vec4 means[]; };
WRITE_STORED(5, DX, dx, 0)

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Slice s = slice_of(invocation);
  uint end = slice_end(s);
  uint plane = plane_of(s);
  vec4 mean = statistics[plane];
  vec4 inverse = statistics[plane + QUADS];
  vec4 factor = inverse * weight_at(s.channel);
  vec4 share = SUMS ? factor / float(rows) : inverse;
  vec4 offset = share * means[plane];
  vec4 along = share * inverse * means[plane + QUADS];
  for (uint i = slice_begin(s); i < end; i += QUADS) {
    set_dx(i, factor * dy_at(i) - offset - along * (x_at(i) - mean));
  }
}
