#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// dx = (1 + sin(2 a x)) dy, and what is to be summed over the rows for da: (x sin(2 a x) - sin(a x)^2 / a) / a dy.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "snake.glsl"

layout(constant_id = 1) const uint COLUMNS = 1u;
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer A { QUAD a[]; };
layout(std430, binding = 2) readonly buffer Dy { QUAD dy[]; };
layout(std430, binding = 3) writeonly buffer Dx { QUAD dx[]; };
layout(std430, binding = 4) writeonly buffer Terms { QUAD terms[]; };
layout(push_constant) uniform Push { uint quads; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uint column = i % ((COLUMNS + 3u) / 4u);
  vec4 v = from_quad(x[i]);
  vec4 f = from_quad(a[column]);
  vec4 g = from_quad(dy[i]);
  vec4 twice = sine_of_twice(f * v);
  dx[i] = to_quad((1.0 + twice) * g, i);
  vec4 slope = (v * twice - squared_sine(f * v) / f) / f;
  terms[i] = to_quad_of(1, keep_columns(slope * g, 4u * column, COLUMNS), i);
}
