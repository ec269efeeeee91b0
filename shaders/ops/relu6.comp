#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/pointwise.glsl"

// As max() and min() may make a number of it, NaN is kept by hand.
vec4 apply(vec4 v) { return mix(min(max(v, 0.0), 6.0), v, is_nan(v)); }
