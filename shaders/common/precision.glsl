// What a number is. A shader with the axis `//! STORAGE = f32 f16 packed` declares its tensors as arrays of QUAD, four
// elements each, reads them with from_quad() and writes them with to_quad(); arithmetic is f32 in between.
//   f32     vec4
//   f16     f16vec4, on devices with 16-bit storage
//   packed  uvec2, the same bytes on devices without
#ifndef HALFSTEP_PRECISION
#define HALFSTEP_PRECISION

#include "common/rounding.glsl"

#ifdef STORAGE_f16
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define QUAD f16vec4
vec4 from_quad(f16vec4 q) { return vec4(q); }
#elif defined(STORAGE_packed)
#define QUAD uvec2
#else
#define QUAD vec4
#endif

vec4 from_quad(vec4 q) { return q; }
vec4 from_quad(uvec2 q) { return vec4(unpackHalf2x16(q.x), unpackHalf2x16(q.y)); }

// The four values that 16-bit patterns stand for; exact.
vec4 from_half_bits(uvec4 bits) { return from_quad(pack_half_bits(bits)); }

#if defined(STORAGE_f16)
QUAD quad_of_half_bits(uvec4 bits) { return f16vec4(from_half_bits(bits)); }
#elif defined(STORAGE_packed)
QUAD quad_of_half_bits(uvec4 bits) { return pack_half_bits(bits); }
#endif

#if defined(STORAGE_f16) || defined(STORAGE_packed)
QUAD to_quad(vec4 v) { return quad_of_half_bits(half_bits_nearest(v)); }
QUAD to_quad_stochastic(vec4 v, uvec4 random) { return quad_of_half_bits(half_bits_stochastic(v, random)); }
#else
QUAD to_quad(vec4 v) { return v; }
QUAD to_quad_stochastic(vec4 v, uvec4 random) { return v; }
#endif

#endif
