#version 440
#extension GL_EXT_shader_integer_mix : require
//! OPERANDS = row_row row_col col_row col_col patches_row patches_col pixels_row
//! TILE = 32 64 128
// The products of gemm.comp for f16 operands with sums in f32, two k at a time: for GPUs that have an instruction for it.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#define STORAGE_packed
#define DOTS
#include "gemm/gemm_tile.glsl"
