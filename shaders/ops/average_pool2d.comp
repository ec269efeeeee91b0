#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/average_pool.glsl"

layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Y { QUAD y[]; };

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  Place at = place_of(i);
  ivec2 begin = window_begin(at.pixel);
  ivec2 end = window_end(at.pixel);
  vec4 total = vec4(0.0);
  for (int row = begin.x; row < end.x; row++) {
    for (int column = begin.y; column < end.y; column++) {
      total += from_quad(x[quad_at(at, ivec2(row, column), input_size)]);
    }
  }
  y[i] = to_quad(total * weight_in(at.pixel), i);
}
