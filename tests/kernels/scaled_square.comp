#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// y = s x^2 of x {rows, columns} and s {columns}.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(constant_id = 1) const uint ROW_QUADS = 1u;
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer S { QUAD s[]; };
layout(std430, binding = 2) writeonly buffer Y { QUAD y[]; };
layout(push_constant) uniform Push { uint quads; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 v = from_quad(x[i]);
  y[i] = to_quad(from_quad(s[i % ROW_QUADS]) * v * v, i);
}
