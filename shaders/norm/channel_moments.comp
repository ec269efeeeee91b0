#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/channel_norm.glsl"
#include "common/mixed_operands.glsl"

// The mean of every channel of a slice, then the sum of squared differences from it: the second pass reads the slice
// from a cache. Sums are of differences from the first row, so that a mean far from zero loses no precision.
READ_STORED(0, X, x)
layout(std430, binding = 1) writeonly buffer Moments { vec4 moments[]; };

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Slice s = slice_of(invocation);
  uint begin = slice_begin(s);
  uint end = slice_end(s);
  vec4 first = x_at(begin);
  vec4 total = vec4(0.0);
  for (uint i = begin; i < end; i += QUADS) total += x_at(i) - first;
  vec4 mean = first + total / float(rows_in(s));
  vec4 squares = vec4(0.0);
  for (uint i = begin; i < end; i += QUADS) {
    vec4 difference = x_at(i) - mean;
    squares += difference * difference;
  }
  uint plane = partial_plane_of(s);
  moments[plane] = mean;
  moments[plane + QUADS] = squares;
}
