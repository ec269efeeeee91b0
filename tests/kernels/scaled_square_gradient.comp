#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// dx = 2 s x dy, and what is to be summed over the rows for s: x^2 dy.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(constant_id = 1) const uint ROW_QUADS = 1u;
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer S { QUAD s[]; };
layout(std430, binding = 2) readonly buffer Dy { QUAD dy[]; };
layout(std430, binding = 3) writeonly buffer Dx { QUAD dx[]; };
layout(std430, binding = 4) writeonly buffer Terms { QUAD terms[]; };
layout(push_constant) uniform Push { uint quads; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 v = from_quad(x[i]);
  vec4 g = from_quad(dy[i]);
  dx[i] = to_quad(2.0 * from_quad(s[i % ROW_QUADS]) * v * g, i);
  terms[i] = to_quad_of(1, v * v * g, i);
}
