#version 440
#extension GL_EXT_shader_integer_mix : require
//! OPERANDS = row_row row_col col_row col_col patches_row patches_col pixels_row
//! STORAGE = f32 words
//! BODY = lanes4 lanes lanes_texels thin thin_texels tile32 tile64 tile128
// GEMM kernels: matmul and linear (A and B by row or by column), convolution (patches_row), its data gradient
// (patches_col) and its weight gradient (pixels_row). f16 is always read as 32-bit words, which halves the number of
// loads.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require

#if defined(BODY_lanes_texels) || defined(BODY_thin_texels)
#define TEXELS
#endif
#if defined(BODY_lanes4)
#define BROADCASTS
#include "gemm/gemm_subgroup.glsl"
#elif defined(BODY_lanes) || defined(BODY_lanes_texels)
#include "gemm/gemm_subgroup.glsl"
#elif defined(BODY_thin) || defined(BODY_thin_texels)
#include "gemm/gemm_thin.glsl"
#else
#if defined(BODY_tile32)
#define TILE 32
#elif defined(BODY_tile64)
#define TILE 64
#else
#define TILE 128
#endif
#include "gemm/gemm_tile.glsl"
#endif
