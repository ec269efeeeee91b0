#version 440
#extension GL_EXT_shader_integer_mix : require
//! STORAGE = f32 words
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#include "mlp/mlp_backward.glsl"
