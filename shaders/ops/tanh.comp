#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/pointwise.glsl"

// tanh |v| = (1 - e) / (1 + e) with e = exp(-2 |v|) cannot overflow, as some drivers' own tanh does. Near 0, where the
// difference cancels, the first terms of the Taylor series are exact to f32: the next is below 6e-8 of v for |v| < 0.2.
vec4 apply(vec4 v) {
  vec4 e = exp_or_nan(-2.0 * abs(v));
  vec4 large = sign(v) * (1.0 - e) / (1.0 + e);
  vec4 square = v * v;
  vec4 small = v + v * square * (square * (2.0 / 15.0 - square * (17.0 / 315.0)) - 1.0 / 3.0);
  return mix(large, small, lessThan(square, vec4(0.04)));
}
