#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/pointwise.glsl"

// A comparison, not max(): NaN stays NaN.
vec4 apply(vec4 v) { return mix(v, vec4(0.0), lessThanEqual(v, vec4(0.0))); }
