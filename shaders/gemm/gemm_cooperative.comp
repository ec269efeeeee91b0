#version 450
//! REQUIRES GL_KHR_cooperative_matrix
//! OPERANDS = row_row row_col col_row col_col patches_row patches_col pixels_row
//! SUMS = f32 f16
// The products of gemm.comp, on devices with matrix units: in f16, or in bf16 or numbers of 8 bits, to which
// vk/shader/matrix_types.h changes the type of factors.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#pragma use_vulkan_memory_model

#define STORAGE_words
#include "gemm/gemm_cooperative.glsl"
