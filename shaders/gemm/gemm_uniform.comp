#version 450
//! OPERANDS = row_row patches_row
//! STORAGE = words
//! TILE = 6x32 12x16
// Matrix products and convolutions where all invocations load from one address at the price of one; STORAGE is what C
// and the bias are stored in, A and the panels of B are f32.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#define ADDRESSED
#include "gemm/gemm_uniform.glsl"
