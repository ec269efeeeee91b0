#version 440
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"

// Sums of nothing.
layout(push_constant) uniform Push { uint quads; };
layout(std430, binding = 0) writeonly buffer Sums { uvec4 sums[]; };

void main() {
  uint i = linear_invocation();
  if (i < quads) sums[i] = uvec4(0u);
}
