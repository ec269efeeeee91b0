#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/pool.glsl"

layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Y { QUAD y[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  Place at = place_of(i, output_size);
  ivec2 begin = window_begin(at.pixel);
  ivec2 end = window_end(at.pixel);
  vec4 largest = from_quad(x[quad_at(at, begin, input_size)]);
  for (int row = begin.x; row < end.x; row++) {
    for (int column = begin.y; column < end.y; column++) {
      vec4 v = from_quad(x[quad_at(at, ivec2(row, column), input_size)]);
      // Not max(): NaN is to stay.
      largest = mix(largest, v, greaterThan(v, largest));
      largest = mix(largest, v, isnan(v));
    }
  }
  y[i] = to_quad(largest);
}
