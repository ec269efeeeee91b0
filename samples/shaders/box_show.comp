#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// What a pixel shows by a path {n, 12}: straight from the lamp, over other surfaces by the path, and the same by the
// cache; a fourth number of each is 0.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(std430, binding = 0) readonly buffer Direct { vec4 direct[]; };
layout(std430, binding = 1) readonly buffer Albedos { vec4 albedos[]; };
layout(std430, binding = 2) readonly buffer Indirect { vec4 indirect[]; };
layout(std430, binding = 3) readonly buffer Cached { QUAD cached[]; };
layout(std430, binding = 4) writeonly buffer Shown { vec4 shown[]; };
layout(push_constant) uniform Push { uint count; };

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  shown[3u * i] = direct[i];
  shown[3u * i + 1u] = albedos[i] * indirect[i];
  shown[3u * i + 2u] = albedos[i] * max(from_quad(cached[i]), vec4(0.0));
}
