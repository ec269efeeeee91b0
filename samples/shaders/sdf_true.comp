#version 450
#extension GL_GOOGLE_include_directive : require
// The distances {n, 1} of positions {n, 3}.
#include "common/indexing.glsl"
#include "sdf_scene.glsl"

layout(std430, binding = 0) readonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 1) writeonly buffer Distances { vec4 distances[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  uint i = linear_invocation();
  if (i < count) distances[i] = vec4(scene(positions[i].xyz), 0.0, 0.0, 0.0);
}
