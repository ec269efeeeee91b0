#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// y = x + sin(a x)^2 / a, of x {rows, columns} and a {columns}.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "snake.glsl"

layout(constant_id = 1) const uint COLUMNS = 1u;
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer A { QUAD a[]; };
layout(std430, binding = 2) writeonly buffer Y { QUAD y[]; };
layout(push_constant) uniform Push { uint quads; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uint column = i % ((COLUMNS + 3u) / 4u);
  vec4 v = from_quad(x[i]);
  vec4 f = from_quad(a[column]);
  y[i] = to_quad(keep_columns(v + squared_sine(f * v) / f, 4u * column, COLUMNS), i);
}
