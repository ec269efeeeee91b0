#version 450
//! OPERANDS = row_row row_col col_row col_col patches_row patches_col pixels_row
//! TILE = 32 64 128
// The products of gemm.comp in f16 arithmetic, for f16 operands whose sums are f16 too.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require

#define STORAGE_packed
#define HALVES
#include "gemm/gemm_tile.glsl"
