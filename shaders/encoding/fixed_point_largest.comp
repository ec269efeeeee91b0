#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"

// The largest magnitude of a tensor, as the bits of f32: those of infinity and NaN are larger than any number's.
layout(push_constant) uniform Push {
  uint quads;
  uint invocations;
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) buffer Sums { uint sums[]; };

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  uvec4 largest = uvec4(0u);
  for (uint at = i; at < quads; at += invocations) {
    largest = max(largest, floatBitsToUint(from_quad(x[at])) & 0x7fffffffu);
  }
  largest.xy = max(largest.xy, largest.zw);
  uint bits = max(largest.x, largest.y);
  if (bits > 0u) atomicMax(sums[0], bits);
}
