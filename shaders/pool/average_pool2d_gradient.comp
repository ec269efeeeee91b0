#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 2
#include "pool/average_pool.glsl"
#include "common/long_sum.glsl"

// Each pixel gathers its part of the gradients of the windows that cover it.
layout(std430, binding = 0) readonly buffer DY { QUAD dy[]; };

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  Place at = place_of(i);
  ivec2 begin = windows_begin(at.pixel);
  ivec2 end = windows_end(at.pixel);
  LongSum total = EMPTY_SUM;
  for (int row = begin.x; row < end.x; row++) {
    LongSum of_row = EMPTY_SUM;
    for (int column = begin.y; column < end.y; column++) {
      ivec2 window = ivec2(row, column);
      add_term(of_row, from_quad(dy[quad_at(at, window, output_size)]) * weight_in(window));
    }
    add_term(total, value_of(of_row));
  }
  store(i, value_of(total));
}
