#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/indexing.glsl"
#include "common/precision.glsl"

// Each position p of the result is x at (p * step + offset) / divisor, or zero where there is none.
layout(constant_id = 1) const bool WHOLE_QUADS = false;  // of the result's rows are quads of x's
const int AXES = 5;
layout(push_constant) uniform Push {
  uint quads;
  int extents[AXES];  // of the result; outermost first
  int x_extents[AXES];
  int steps[AXES];
  int offsets[AXES];
  int divisors[AXES];
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Y { QUAD y[]; };

// The place on an axis of x, or -1.
int place_on(int axis, int position) {
  int place = position * steps[axis] + offsets[axis];
  if (place < 0 || place % divisors[axis] != 0) return -1;
  place /= divisors[axis];
  return place < x_extents[axis] ? place : -1;
}

// The row of x that a row of the result is taken from, or -1.
int row_of(uint row) {
  int source = 0;
  int stride = 1;
  for (int axis = AXES - 2; axis >= 0; axis--) {
    int place = place_on(axis, int(row % uint(extents[axis])));
    if (place < 0) return -1;
    row /= uint(extents[axis]);
    source += place * stride;
    stride *= x_extents[axis];
  }
  return source;
}

vec4 elements_from(int row, int column) {
  int first = row * ((x_extents[AXES - 1] + 3) / 4);
  if (WHOLE_QUADS) {
    int place = column + offsets[AXES - 1];
    return place < 0 || place >= x_extents[AXES - 1] ? vec4(0.0) : from_quad(x[first + place / 4]);
  }
  vec4 v = vec4(0.0);
  for (int i = 0; i < 4; i++) {
    int place = place_on(AXES - 1, column + i);
    if (place >= 0) v[i] = from_quad(x[first + place / 4])[place % 4];
  }
  return v;
}

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uint columns = uint(extents[AXES - 1]);
  uint quads_per_row = (columns + 3u) / 4u;
  uint column = i % quads_per_row * 4u;
  int row = row_of(i / quads_per_row);
  y[i] = to_quad(row < 0 ? vec4(0.0) : keep_columns(elements_from(row, int(column)), column, columns), i);
}
