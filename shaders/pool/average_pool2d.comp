#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 2
#include "pool/average_pool.glsl"

layout(std430, binding = 0) readonly buffer X { QUAD x[]; };

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  Place at = place_of(i);
  ivec2 begin = window_begin(at.pixel);
  ivec2 end = window_end(at.pixel);
  vec4 total = vec4(0.0);
  // Row by row: the error of one sum over a large image would grow with its pixels.
  for (int row = begin.x; row < end.x; row++) {
    vec4 of_row = vec4(0.0);
    for (int column = begin.y; column < end.y; column++) {
      of_row += from_quad(x[quad_at(at, ivec2(row, column), input_size)]);
    }
    total += of_row;
  }
  store(i, total * weight_in(at.pixel));
}
