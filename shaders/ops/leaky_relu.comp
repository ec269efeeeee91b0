#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/pointwise.glsl"

vec4 apply(vec4 v) { return mix(v, parameter * v, is_negative(v)); }
