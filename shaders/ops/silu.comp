#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/pointwise.glsl"

// exp(-v) of a very negative v is infinite, and the quotient 0 as it should be.
vec4 apply(vec4 v) { return v / (1.0 + exp_or_nan(-v)); }
