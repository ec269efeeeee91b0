#version 450
//! REQUIRES GL_KHR_cooperative_matrix
//! OPERANDS = row_row row_col col_row col_col patches_row patches_col pixels_row
//! SUMS = f32 f16
//! TILE = 32 64 128
// The products of gemm.comp, in f16 on devices with matrix units.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma use_vulkan_memory_model

#define STORAGE_packed
#include "gemm/gemm_cooperative.glsl"
