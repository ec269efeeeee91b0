#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/pointwise.glsl"

vec4 apply(vec4 v) { return v * clamp(v * (1.0 / 6.0) + 0.5, 0.0, 1.0); }
