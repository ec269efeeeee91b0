#version 450
//! OPERANDS = col_row pixels_row
//! STORAGE = f32 words
// The products that weight gradients are, for drivers where a load from one address by all invocations costs as much as
// one load. STORAGE is the type of C; A and B are f32.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_quad : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#define ADDRESSED
#include "gemm/gemm_outer.glsl"
