#version 450
#extension GL_GOOGLE_include_directive : require
// Each workgroup writes its number, read in both ways that SPIR-V has: as a whole and by its parts.
#include "common/indexing.glsl"

layout(std430, binding = 0) writeonly buffer Numbers { uvec2 numbers[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  uvec3 whole = gl_WorkGroupID;
  if (linear_group() < count && gl_LocalInvocationID.x == 0u) numbers[linear_group()] = whole.xx + uvec2(0u, whole.y);
}
