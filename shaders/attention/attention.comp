#version 440
#extension GL_EXT_shader_integer_mix : require
//! PASS = forward queries keys
//! STORAGE = f32 words
//! BODY = rows tile
// Attention that stores no scores: see attention.glsl. f16 is read as 32-bit words, as by products.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

#include "attention/attention.glsl"
#ifdef BODY_tile
#include "attention/attention_tile.glsl"
#else
#include "attention/attention_rows.glsl"
#endif
#include "attention/attention_main.glsl"
