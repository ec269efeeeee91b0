#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/indexing.glsl"
#include "common/precision.glsl"

// The gradient of the mean of (a - b)^2 for a: 2 / elements * (a - b) * cotangent.
layout(push_constant) uniform Push {
  uint quads;
  float factor;
};
layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) readonly buffer B { QUAD b[]; };
layout(std430, binding = 2) readonly buffer Cotangent { vec4 cotangent[]; };
layout(std430, binding = 3) writeonly buffer Gradient { QUAD gradient[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  gradient[i] = to_quad((from_quad(a[i]) - from_quad(b[i])) * (factor * cotangent[0].x), i);
}
