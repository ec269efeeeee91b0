// What a number is. A shader with the axis `//! STORAGE = f32 f16 packed` declares its tensors as arrays of QUAD, four
// elements each, reads them with from_quad(q) and writes them with to_quad(v, place); arithmetic is f32 in between.
//   f32     vec4
//   f16     f16vec4, on devices with 16-bit storage
//   packed  uvec2, the same bytes on devices without
// What is f32 whatever STORAGE is has its own array of vec4.
//
// `place` is the number of the quad in its tensor. Where f16 is rounded stochastically the noise is keyed on it, and on
// what set 1 holds: seed, step, and a number for the tensor. A kernel with two results of f16 writes the second with
// to_quad_of(1, v, place).
//
// The 16-bit quads are converted where they are loaded or stored, in macros: a function that takes one would need the
// capability for f16 arithmetic, which devices with 16-bit storage may lack.
#ifndef HALFSTEP_PRECISION
#define HALFSTEP_PRECISION

#include "common/rounding.glsl"

#if defined(STORAGE_f16)
#extension GL_EXT_shader_16bit_storage : require
#endif

#if defined(STORAGE_f16) || defined(STORAGE_packed)
#include "common/storing.glsl"
#endif

vec4 unpack_quad(uvec2 q) { return vec4(unpackHalf2x16(q.x), unpackHalf2x16(q.y)); }

// The four values that 16-bit patterns stand for; exact.
vec4 from_half_bits(uvec4 bits) { return unpack_quad(pack_half_bits(bits)); }

#if defined(STORAGE_f16)
#define QUAD f16vec4
#define from_quad(q) vec4(q)
#define quad_of_half_bits(bits) f16vec4(from_half_bits(bits))
#elif defined(STORAGE_packed)
#define QUAD uvec2
#define from_quad(q) unpack_quad(q)
#define quad_of_half_bits(bits) pack_half_bits(bits)
#else
#define QUAD vec4
#define from_quad(q) (q)
#endif

#if defined(STORAGE_f16) || defined(STORAGE_packed)
#define to_quad_of(result, v, place) quad_of_half_bits(stored_half_bits(v, uint(place), uint(result)))
#else
#define to_quad_of(result, v, place) (v)
#endif
#define to_quad(v, place) to_quad_of(0, v, place)

#endif
