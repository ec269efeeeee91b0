// Elementwise kernels of two tensors, with broadcasting: a shader includes this and defines apply().
#include "common/indexing.glsl"
#include "common/precision.glsl"
#include "common/broadcast.glsl"

layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) readonly buffer B { QUAD b[]; };
layout(std430, binding = 2) writeonly buffer Y { QUAD y[]; };

vec4 apply(vec4 a, vec4 b);

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uvec2 at = operands_of(i);
  vec4 left = from_quad(a[at.x]);
  vec4 right = from_quad(b[at.y]);
  if (SPREAD_A) left = left.xxxx;
  if (SPREAD_B) right = right.xxxx;
  y[i] = to_quad(clear_pad(apply(left, right), i), i);
}
