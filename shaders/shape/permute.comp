#version 440
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! BITS = 16 32
#include "common/indexing.glsl"

// The axes of x in another order. Elements are copied as bits, whatever their type. Everything is specialized: software
// drivers divide slowly by variables.
//
// Where the last axis stays last, an invocation copies a quad. Otherwise it transposes four by four elements: from four
// rows of x that are adjacent along the axis that becomes the last, a quad each, to four rows of y. The OUTER axes are
// the other ones, outermost of y first; strides are in rows.
#define OUTER 7
#define FOR_OUTER(name, id, otherwise)                                                                   \
  layout(constant_id = id) const uint name##_0 = otherwise;                                              \
  layout(constant_id = id + 1) const uint name##_1 = otherwise;                                          \
  layout(constant_id = id + 2) const uint name##_2 = otherwise;                                          \
  layout(constant_id = id + 3) const uint name##_3 = otherwise;                                          \
  layout(constant_id = id + 4) const uint name##_4 = otherwise;                                          \
  layout(constant_id = id + 5) const uint name##_5 = otherwise;                                          \
  layout(constant_id = id + 6) const uint name##_6 = otherwise;                                          \
  uint name(int axis) {                                                                                  \
    uint all[OUTER] = uint[OUTER](name##_0, name##_1, name##_2, name##_3, name##_4, name##_5, name##_6); \
    return all[axis];                                                                                    \
  }
layout(constant_id = 1) const bool LAST_STAYS = false;
layout(constant_id = 2) const uint X_COLUMNS = 1u;
layout(constant_id = 3) const uint Y_COLUMNS = 1u;
layout(constant_id = 4) const uint X_STRIDE = 1u;  // of y's last axis in x
layout(constant_id = 5) const uint Y_STRIDE = 1u;  // of x's last axis in y
FOR_OUTER(extents, 6, 1u)
FOR_OUTER(x_strides, 13, 0u)
FOR_OUTER(y_strides, 20, 0u)
const uint X_QUADS = (X_COLUMNS + 3u) / 4u;
const uint Y_QUADS = (Y_COLUMNS + 3u) / 4u;

layout(push_constant) uniform Push { uint invocations; };

#ifdef BITS_32
#define WORDS uvec4
#define elements(quad) (quad)
#define quad_of(elements) (elements)
#else
#define WORDS uvec2
uvec4 elements(uvec2 quad) { return uvec4(quad.x & 0xffffu, quad.x >> 16, quad.y & 0xffffu, quad.y >> 16); }
uvec2 quad_of(uvec4 v) { return uvec2(v.x | v.y << 16, v.z | v.w << 16); }
#endif
layout(std430, binding = 0) readonly buffer X { WORDS x[]; };
layout(std430, binding = 1) writeonly buffer Y { WORDS y[]; };

// Adds the rows of x and y at position `i` of the outer axes.
void find_rows(uint i, inout uint x_row, inout uint y_row) {
  [[unroll]] for (int axis = OUTER - 1; axis >= 0; axis--) {
    uint position = i % extents(axis);
    i /= extents(axis);
    x_row += position * x_strides(axis);
    y_row += position * y_strides(axis);
  }
}

void copy_quad(uint i) {
  uint x_row = 0u;
  uint y_row = 0u;
  find_rows(i / Y_QUADS, x_row, y_row);
  y[y_row * Y_QUADS + i % Y_QUADS] = x[x_row * X_QUADS + i % Y_QUADS];
}

void transpose_block(uint i) {
  uint y_quad = i % Y_QUADS;
  uint x_quad = i / Y_QUADS % X_QUADS;
  uint x_row = y_quad * 4u * X_STRIDE;
  uint y_row = x_quad * 4u * Y_STRIDE;
  find_rows(i / Y_QUADS / X_QUADS, x_row, y_row);
  uvec4 rows[4];
  [[unroll]] for (uint r = 0u; r < 4u; r++) {
    rows[r] = uvec4(0u);
    if (y_quad * 4u + r < Y_COLUMNS) rows[r] = elements(x[(x_row + r * X_STRIDE) * X_QUADS + x_quad]);
  }
  [[unroll]] for (uint c = 0u; c < 4u; c++) {
    uvec4 column = uvec4(rows[0][c], rows[1][c], rows[2][c], rows[3][c]);
    if (x_quad * 4u + c < X_COLUMNS) y[(y_row + c * Y_STRIDE) * Y_QUADS + y_quad] = quad_of(column);
  }
}

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  if (LAST_STAYS) {
    copy_quad(i);
  } else {
    transpose_block(i);
  }
}
