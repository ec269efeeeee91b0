#version 450
//! OPERANDS = patches_row patches_col
//! STORAGE = f32 words
// Convolutions and their data gradients by gemm_runs.glsl.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require

#define TEXELS
#include "gemm/gemm_runs.glsl"
