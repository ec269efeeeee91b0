#version 450
//! STORAGE = f32 words
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#include "mlp/mlp_backward.glsl"
