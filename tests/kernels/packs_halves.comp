#version 450
#extension GL_GOOGLE_include_directive : require
// The bits of x in f16, as numbers.
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform Push { uint quads; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uvec2 words = uvec2(packHalf2x16(x[i].xy), packHalf2x16(x[i].zw));
  y[i] = vec4(words.x & 0xffffu, words.x >> 16, words.y & 0xffffu, words.y >> 16);
}
