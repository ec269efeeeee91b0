#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Where a ray has ended: the ray from there to the light, and two positions along the normal, for ambient occlusion.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "sdf_normal.glsl"
#include "sdf_light.glsl"

layout(std430, binding = 0) readonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 1) readonly buffer Distances { QUAD distances[]; };  // at the corners
layout(std430, binding = 2) writeonly buffer Rays { vec4 rays[]; };
layout(std430, binding = 3) writeonly buffer Directions { vec4 directions[]; };
layout(std430, binding = 4) writeonly buffer Above { vec4 above[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  vec3 p = positions[i].xyz;
  vec3 n = normal_of(from_quad(distances[i]));
  vec3 begin = p + 0.008 * n;
  vec3 to_side = max((vec3(0.0) - begin) / LIGHT, (vec3(1.0) - begin) / LIGHT);
  rays[i] = vec4(begin, max(min(to_side.x, min(to_side.y, to_side.z)), 0.0));
  directions[i] = vec4(LIGHT, 0.0);
  above[2u * i] = vec4(p + OCCLUSION_NEAR * n, 0.0);
  above[2u * i + 1u] = vec4(p + OCCLUSION_FAR * n, 0.0);
}
