#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 3
#define FIRST_ARGUMENT 4
#include "pool/pool.glsl"

// Each pixel gathers the gradients of the windows whose first largest element it is.
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer Y { QUAD y[]; };
layout(std430, binding = 2) readonly buffer DY { QUAD dy[]; };

// Whether no element of a window that comes before `pixel` is as large as `largest`.
bvec4 none_before(Place at, ivec2 window, ivec4 largest) {
  ivec2 begin = window_begin(window);
  ivec2 end = window_end(window);
  bvec4 found = bvec4(false);
  ivec2 place = begin;
  while (place != at.pixel) {
    bvec4 same = equal(order_in_window(from_quad(x[quad_at(at, place, input_size)])), largest);
    found = mix(found, bvec4(true), same);
    place.y++;
    if (place.y == end.y) place = ivec2(place.x + 1, begin.y);
  }
  return not(found);
}

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  Place at = place_of(i);
  ivec4 v = order_in_window(from_quad(x[i]));
  vec4 total = vec4(0.0);
  ivec2 begin = windows_begin(at.pixel);
  ivec2 end = windows_end(at.pixel);
  for (int row = begin.x; row < end.x; row++) {
    for (int column = begin.y; column < end.y; column++) {
      uint window = quad_at(at, ivec2(row, column), output_size);
      ivec4 largest = order_in_window(from_quad(y[window]));
      bvec4 is_largest = equal(v, largest);
      if (!any(is_largest)) continue;
      bvec4 is_first = mix(bvec4(false), none_before(at, ivec2(row, column), largest), is_largest);
      total += mix(vec4(0.0), from_quad(dy[window]), is_first);
    }
  }
  store(i, total);
}
