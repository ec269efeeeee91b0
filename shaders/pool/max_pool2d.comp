#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 2
#include "pool/pool.glsl"

layout(std430, binding = 0) readonly buffer X { QUAD x[]; };

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  Place at = place_of(i);
  ivec2 begin = window_begin(at.pixel);
  ivec2 end = window_end(at.pixel);
  ivec4 largest = order_in_window(from_quad(x[quad_at(at, begin, input_size)]));
  for (int row = begin.x; row < end.x; row++) {
    for (int column = begin.y; column < end.y; column++) {
      largest = max(largest, order_in_window(from_quad(x[quad_at(at, ivec2(row, column), input_size)])));
    }
  }
  store(i, number_at(largest));
}
