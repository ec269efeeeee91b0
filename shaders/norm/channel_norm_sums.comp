#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/slice_columns.glsl"
#include "common/mixed_operands.glsl"

// The sums of dy and of dy times the normalised x over a slice.
READ_STORED(0, X, x)
READ_STORED(1, DY, dy)
layout(std430, binding = 2) readonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 3) writeonly buffer Sums { vec4 sums[]; };

void main() {
  OwnSlice own = own_slice();
  Slice s = own.slice;
  vec4 total = vec4(0.0);
  vec4 along = vec4(0.0);
  if (own.is_there) {
    uint end = slice_end(s);
    vec4 mean = statistics[plane_of(s)];
    for (uint i = slice_begin(s) + lane() * QUADS; i < end; i += LANES * QUADS) {
      vec4 gradient = dy_at(i);
      total += gradient;
      along += gradient * (x_at(i) - mean);
    }
  }
  total = sum_over_lanes(total);
  along = sum_over_lanes(along);
  if (!own.is_there || lane() != 0u) return;
  uint plane = partial_plane_of(s);
  sums[plane] = total;
  sums[plane + QUADS] = along * statistics[plane_of(s) + QUADS];
}
