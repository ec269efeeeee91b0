#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/pointwise_pair.glsl"

// a is the gradient of the result, b the input.
vec4 apply(vec4 a, vec4 b) {
  vec4 s = 1.0 / (1.0 + exp_or_nan(-b));
  return a * s * (1.0 + b * (1.0 - s));
}
