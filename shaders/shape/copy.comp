#version 440
#extension GL_GOOGLE_include_directive : require
// Copies a tensor's bytes: the size of every tensor is a multiple of two words.
#include "common/indexing.glsl"

layout(push_constant) uniform Push { uint pairs; };
layout(std430, binding = 0) readonly buffer Source { uvec2 source[]; };
layout(std430, binding = 1) writeonly buffer Destination { uvec2 destination[]; };

void main() {
  uint i = linear_invocation();
  if (i < pairs) destination[i] = source[i];
}
