#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 3
#define FIRST_ARGUMENT 4
#include "pool/pool.glsl"

// The gradient of max pooling with windows that do not overlap. An invocation writes all pixels from its window's first
// up to the next window's: the first of the window's largest elements receives the gradient.
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer Y { QUAD y[]; };
layout(std430, binding = 2) readonly buffer DY { QUAD dy[]; };

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  Place at = place_of(i);
  ivec2 begin = window_begin(at.pixel);
  ivec2 end = window_end(at.pixel);
  ivec2 next = min((at.pixel + 1) * stride - padding, input_size);
  bool is_window = all(lessThan(at.pixel, output_size));
  uint window = is_window ? quad_at(at, at.pixel, output_size) : 0u;
  ivec4 largest = order_in_window(from_quad(y[window]));
  vec4 gradient = is_window ? from_quad(dy[window]) : vec4(0.0);
  for (int row = begin.x; row < next.x; row++) {
    for (int column = begin.y; column < next.y; column++) {
      uint pixel = quad_at(at, ivec2(row, column), input_size);
      bvec4 inside = bvec4(row < end.x && column < end.y);
      bvec4 chosen = mix(bvec4(false), equal(order_in_window(from_quad(x[pixel])), largest), inside);
      store(pixel, mix(vec4(0.0), gradient, chosen));
      gradient = mix(gradient, vec4(0.0), chosen);
    }
  }
}
