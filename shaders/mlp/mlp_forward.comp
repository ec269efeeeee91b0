#version 450
//! STORAGE = f32 words
//! KEEP = nothing layers
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#include "mlp/mlp_forward.glsl"
