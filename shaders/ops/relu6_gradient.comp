#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/pointwise_pair.glsl"

// a is the gradient of the result, b the result.
vec4 apply(vec4 a, vec4 b) {
  return mix(vec4(0.0), mix(vec4(0.0), a, is_positive(b)), is_positive(6.0 - b));
}
