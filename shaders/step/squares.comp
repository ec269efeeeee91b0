#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
// Sums of the squares of gradients: invocation i takes every slices-th quad from the i-th.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(push_constant) uniform Push {
  uint quads;
  uint slices;
  uint first_sum;
};
layout(std430, binding = 0) readonly buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 1) writeonly buffer Sums { vec4 sums[]; };

void main() {
  uint slice = linear_invocation();
  if (slice >= slices) return;
  vec4 total = vec4(0.0);
  for (uint i = slice; i < quads; i += slices) {
    vec4 gradient = from_quad(gradients[i]);
    total += gradient * gradient;
  }
  sums[first_sum + slice] = total;
}
