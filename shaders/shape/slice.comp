#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! STORAGE = storages
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 2
#include "common/expression.glsl"

// Each position p of the result is x at (p * step + offset) / divisor, or zero if there is none. Everything is
// specialized, outermost axis first: software drivers divide slowly by variables.
#define AXES 5
#define FOR_AXES(name, id, otherwise)                                            \
  layout(constant_id = id) const int name##_0 = otherwise;                       \
  layout(constant_id = id + 1) const int name##_1 = otherwise;                   \
  layout(constant_id = id + 2) const int name##_2 = otherwise;                   \
  layout(constant_id = id + 3) const int name##_3 = otherwise;                   \
  layout(constant_id = id + 4) const int name##_4 = otherwise;                   \
  int name(int axis) {                                                           \
    int all[AXES] = int[AXES](name##_0, name##_1, name##_2, name##_3, name##_4); \
    return all[axis];                                                            \
  }
layout(constant_id = 1) const bool WHOLE_QUADS = false;  // quads of the result's rows are whole quads of x's rows
FOR_AXES(extents, 2, 1)  // of the result
FOR_AXES(x_extents, 7, 1)
FOR_AXES(steps, 12, 1)
FOR_AXES(offsets, 17, 0)
FOR_AXES(divisors, 22, 1)
const int LAST = AXES - 1;

layout(push_constant) uniform Push {
  uint quads;
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };

// The position on an axis of x, or -1.
int place_on(int axis, int position) {
  int place = position * steps(axis) + offsets(axis);
  if (place < 0 || place % divisors(axis) != 0) return -1;
  place /= divisors(axis);
  return place < x_extents(axis) ? place : -1;
}

// The row of x for a row of the result, or -1.
int row_of(int row) {
  int source = 0;
  int stride = 1;
  bool found = true;
  [[unroll]] for (int axis = LAST - 1; axis >= 0; axis--) {
    int place = place_on(axis, row % extents(axis));
    found = found && place >= 0;
    row /= extents(axis);
    source += place * stride;
    stride *= x_extents(axis);
  }
  return found ? source : -1;
}

vec4 elements_from(int row, int column) {
  int first = row * ((x_extents(LAST) + 3) / 4);
  if (WHOLE_QUADS) {
    int place = column + offsets(LAST);
    return place < 0 || place >= x_extents(LAST) ? vec4(0.0) : from_quad(x[first + place / 4]);
  }
  vec4 v = vec4(0.0);
  [[unroll]] for (int i = 0; i < 4; i++) {
    int place = place_on(LAST, column + i);
    if (place >= 0) v[i] = from_quad(x[first + place / 4])[place % 4];
  }
  return v;
}

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  int quads_per_row = (extents(LAST) + 3) / 4;
  int column = int(i) % quads_per_row * 4;
  int row = row_of(int(i) / quads_per_row);
  store(i, row < 0 ? vec4(0.0) : elements_from(row, column));
}
