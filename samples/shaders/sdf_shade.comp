#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// What each ray shows, {n, 8}: its colour, its length to the surface (-1 where it misses), the normal there, and 0.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "sdf_normal.glsl"
#include "sdf_light.glsl"

layout(std430, binding = 0) readonly buffer Rays { vec4 rays[]; };
layout(std430, binding = 1) readonly buffer Directions { vec4 directions[]; };
layout(std430, binding = 2) readonly buffer States { vec4 states[]; };
layout(std430, binding = 3) readonly buffer Distances { QUAD distances[]; };  // at the corners
layout(std430, binding = 4) readonly buffer Above { QUAD above[]; };          // the distances of two positions
layout(std430, binding = 5) readonly buffer Lit { vec4 lit[]; };              // the states of the rays to the light
layout(std430, binding = 6) writeonly buffer Shown { vec4 shown[]; };
layout(push_constant) uniform Push { uint count; };

vec3 material(vec3 position, vec3 n) {
  vec3 p = 2.0 * position - 1.0;
  vec3 q = p - vec3(0.0, 0.06, 0.0);
  float from_centre = length(q);
  if (length(vec3(abs(p.x), p.y, abs(p.z)) - vec3(0.66, -0.58, 0.66)) < 0.135) return vec3(0.82, 0.24, 0.20);
  if (p.y < -0.6 && max(abs(p.x), abs(p.z)) < 0.9 && n.y > -0.5) {
    bool dark = (int(floor(p.x * 5.0)) + int(floor(p.z * 5.0))) % 2 == 0;
    return dark ? vec3(0.30, 0.33, 0.38) : vec3(0.62, 0.63, 0.62);
  }
  if (from_centre < 0.36) return vec3(0.95, 0.62, 0.18);
  if (from_centre < 0.6) return mix(vec3(0.10, 0.34, 0.52), vec3(0.16, 0.62, 0.60), 0.5 + q.y);
  return p.y > -0.5 && length(p.xz) > 0.3 ? vec3(0.82, 0.24, 0.20) : vec3(0.55, 0.56, 0.58);
}

float occlusion_of(vec2 d) {
  float closed = max(OCCLUSION_NEAR - 2.0 * d.x, 0.0) / OCCLUSION_NEAR + max(OCCLUSION_FAR - 2.0 * d.y, 0.0) / OCCLUSION_FAR;
  return clamp(1.0 - 0.45 * closed, 0.0, 1.0);
}

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  vec3 direction = directions[i].xyz;
  vec3 sky = mix(vec3(0.86, 0.88, 0.91), vec3(0.42, 0.56, 0.74), clamp(0.5 + 0.9 * direction.y, 0.0, 1.0));
  float at = states[i].x;
  if (at >= rays[i].w || abs(states[i].y) > 0.004) {
    shown[2u * i] = vec4(sky, -1.0);
    shown[2u * i + 1u] = vec4(0.0);
    return;
  }
  vec3 n = normal_of(from_quad(distances[i]));
  vec3 albedo = material(rays[i].xyz + at * direction, n);
  float shadow = clamp(14.0 * lit[i].z, 0.0, 1.0);
  float sun = max(dot(n, LIGHT), 0.0) * shadow * shadow * (3.0 - 2.0 * shadow);
  vec3 half_way = normalize(LIGHT - direction);
  float shine = pow(max(dot(n, half_way), 0.0), 48.0) * sun;
  float open = occlusion_of(vec2(from_quad(above[i])));
  vec3 ambient = mix(vec3(0.20, 0.18, 0.17), vec3(0.42, 0.48, 0.58), 0.5 + 0.5 * n.y) * open;
  vec3 colour = albedo * (ambient + 1.15 * vec3(1.0, 0.95, 0.86) * sun) + 0.35 * shine;
  shown[2u * i] = vec4(pow(clamp(colour, 0.0, 1.0), vec3(0.72)), at);
  shown[2u * i + 1u] = vec4(n, 0.0);
}
