#version 450
#extension GL_GOOGLE_include_directive : require
// Four positions around each: the corners of a tetrahedron, whose distances give the normal.
#include "common/indexing.glsl"
#include "sdf_normal.glsl"

layout(std430, binding = 0) readonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 1) writeonly buffer Around { vec4 around[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  uint i = linear_invocation();
  if (i < count) around[i] = vec4(positions[i / 4u].xyz + NORMAL_REACH * corner_of(i % 4u), 0.0);
}
