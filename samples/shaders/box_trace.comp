#version 450
#extension GL_GOOGLE_include_directive : require
// One light path for each {pixel, sample}: what its first point shows of the lamp, that point, its normal and its
// albedo, and what light came there over other surfaces, along the one direction that was drawn. The same pixel and
// sample give the same path.
#include "common/indexing.glsl"
#include "common/rng.glsl"
#include "box_scene.glsl"

const uint VERTICES = 6u;  // of a path, after its first

layout(std430, binding = 0) readonly buffer Paths { uvec4 paths[]; };
layout(std430, binding = 1) writeonly buffer Direct { vec4 direct[]; };
layout(std430, binding = 2) writeonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 3) writeonly buffer Normals { vec4 normals[]; };
layout(std430, binding = 4) writeonly buffer Albedos { vec4 albedos[]; };
layout(std430, binding = 5) writeonly buffer Indirect { vec4 indirect[]; };
layout(push_constant) uniform Push {
  uint count;
  uint side;  // pixels
  uint seed;
};

vec4 draws(uvec2 path, uint vertex) {
  return vec4(philox4x32(uvec4(path, vertex, 0u), uvec2(seed, 0x626f78u)) >> 8u) / 16777216.0;
}

// A direction about a normal, in proportion to the cosine.
vec3 scattered(vec3 normal, vec2 at) {
  float angle = 6.28318531 * at.x;
  float height = 1.0 - 2.0 * at.y;
  vec3 ball = vec3(sqrt(max(1.0 - height * height, 0.0)) * vec2(cos(angle), sin(angle)), height);
  vec3 v = normal + 0.9999 * ball;
  return v / length(v);
}

vec3 camera_ray(uint pixel, vec2 jitter) {
  vec2 at = (vec2(pixel % side, pixel / side) + jitter) / float(side) * 2.0 - 1.0;
  return normalize(vec3(0.38 * at.x, -0.38 * at.y, -1.0));
}

// The mean over four points of the lamp, one in each quarter.
float lamp_light(vec3 position, vec3 normal, uvec2 path) {
  vec4 a = draws(path, 100u);
  vec4 b = draws(path, 101u);
  return 0.25 * (from_lamp(position, normal, 0.5 * a.xy) + from_lamp(position, normal, 0.5 * (a.zw + vec2(1.0, 0.0))) +
                 from_lamp(position, normal, 0.5 * (b.xy + vec2(0.0, 1.0))) +
                 from_lamp(position, normal, 0.5 * (b.zw + vec2(1.0, 1.0))));
}

vec3 light_over_surfaces(vec3 position, vec3 normal, uvec2 path, vec2 first) {
  vec3 sum = vec3(0.0);
  vec3 through = vec3(1.0);
  vec3 direction = scattered(normal, first);
  for (uint vertex = 0u; vertex < VERTICES; ++vertex) {
    vec3 origin = position + 1e-4 * normal;
    Hit hit = first_hit(origin, direction);
    if (hit.at > 1e8 || hit.light) break;
    position = origin + hit.at * direction;
    normal = hit.normal;
    through *= hit.albedo;
    vec4 at = draws(path, vertex + 2u);
    sum += through * from_lamp(position, normal, at.xy);
    direction = scattered(normal, at.zw);
  }
  return sum;
}

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  uvec2 path = paths[i].xy;
  vec3 eye = vec3(0.5, 0.5, 2.32);
  vec4 at = draws(path, 0u);
  vec3 direction = camera_ray(path.x, at.xy);
  Hit hit = first_hit(eye, direction);
  bool surface = hit.at <= 1e8 && !hit.light;
  vec3 position = surface ? eye + hit.at * direction : vec3(0.5);
  vec4 more = draws(path, 1u);
  direct[i] = vec4(surface ? hit.albedo * lamp_light(position, hit.normal, path)
                           : vec3(hit.light ? LIGHT_RADIANCE : 0.0), 0.0);
  positions[i] = vec4(clamp(position, vec3(0.0), vec3(1.0)), 0.0);
  normals[i] = vec4(surface ? hit.normal : vec3(0.0, 0.0, 1.0), 0.0);
  albedos[i] = vec4(surface ? hit.albedo : vec3(0.0), 0.0);
  indirect[i] = vec4(surface ? light_over_surfaces(position, hit.normal, path, more.xy) : vec3(0.0), 0.0);
}
