#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! ENCODING = frequency one_blob spherical_harmonics
#include "common/indexing.glsl"
#include "encoding/encoding.glsl"

// The gradient of coordinates from that of their features.
layout(std430, binding = 0) readonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 1) readonly buffer DY { vec4 dy[]; };
layout(std430, binding = 2) writeonly buffer Result { vec4 result[]; };

void main() {
  uint row = linear_invocation();
  if (row >= rows) return;
  vec4 position = positions[row];
  vec4 sum = vec4(0.0);
  for (uint column = 0u; column < COLUMNS; column++) {
    sum += dy[row * ROW_QUADS + column / 4u][column % 4u] * slope(position, column);
  }
  result[row] = sum;
}
