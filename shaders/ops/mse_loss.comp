#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/indexing.glsl"
#include "common/precision.glsl"

// Partial sums of (a - b)^2: invocation i takes every slices-th quad from the i-th.
layout(push_constant) uniform Push {
  uint quads;
  uint slices;
};
layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) readonly buffer B { QUAD b[]; };
layout(std430, binding = 2) writeonly buffer Partial { vec4 partial_sums[]; };

void main() {
  uint slice = linear_invocation();
  if (slice >= slices) return;
  vec4 total = vec4(0.0);
  for (uint i = slice; i < quads; i += slices) {
    vec4 difference = from_quad(a[i]) - from_quad(b[i]);
    total += difference * difference;
  }
  partial_sums[slice] = total;
}
