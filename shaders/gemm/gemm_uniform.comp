#version 450
//! OPERANDS = row_row col_row patches_row planes_row
//! STORAGE = f32 words
// Matrix products and convolutions for drivers where a load from one address by all invocations costs as much as one
// load. STORAGE is the type of C and the bias; A and the panels of B are f32.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_quad : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define ADDRESSED
#include "gemm/gemm_uniform.glsl"
