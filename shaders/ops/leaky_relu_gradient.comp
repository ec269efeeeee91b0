#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/pointwise_pair.glsl"

// a is the gradient of the result, b the result, which has the sign of the input, or is 0 where it is negative.
vec4 apply(vec4 a, vec4 b) { return mix(factor * a, a, is_positive(b)); }
