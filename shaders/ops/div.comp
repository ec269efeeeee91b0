#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/pointwise_pair.glsl"

vec4 apply(vec4 a, vec4 b) { return a / b; }
