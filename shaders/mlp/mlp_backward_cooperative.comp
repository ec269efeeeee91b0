#version 450
//! REQUIRES GL_KHR_cooperative_matrix
// The network of mlp_backward.comp, in f16 on devices with matrix units.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#pragma use_vulkan_memory_model

#define STORAGE_packed
#define MATRIX_UNITS
#include "mlp/mlp_backward.glsl"
