#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/pointwise_pair.glsl"

// a is the gradient of the result, b the input.
vec4 apply(vec4 a, vec4 b) {
  vec4 slope = b * (1.0 / 3.0) + 0.5;
  slope = mix(slope, vec4(0.0), lessThan(b, vec4(-3.0)));
  slope = mix(slope, vec4(1.0), greaterThan(b, vec4(3.0)));
  return a * slope;
}
