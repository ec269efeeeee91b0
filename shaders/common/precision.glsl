// What a number is. A shader with the axis `//! STORAGE = storages` declares its tensors as arrays of QUAD, four
// elements each, reads them with from_quad(q) and writes them with to_quad(v, place); arithmetic is f32 in between.
// Each type has a file in shaders/storage/, which knows its bits. What is f32 whatever STORAGE is has its own array of
// vec4.
//
// A type that has fewer bits than f32 is NARROW, and its file says
//   QUAD, from_quad(q), quad_of_bits(bits)       what is in memory; bits are 16-bit patterns, in the low halves of a uvec4
//   bits_nearest(v), bits_stochastic(v, random)  to nearest, ties to even; and up or down with the probability that makes
//                                                the expected value v, from 32 random bits an element
//   from_bits(bits)                              exact
//   LARGEST_FINITE, LARGEST_BITS                 the largest finite number, and its pattern, which infinity's follows
//   SMALLEST_NORMAL                              as bits of f32
//   ONE_BITS                                     the pattern of 1
//
// `place` is the number of the quad in its tensor. Where numbers are rounded stochastically the noise is keyed on it,
// and on what set 1 holds: seed, step, and a number for the tensor. A kernel with two narrow results writes the second
// with to_quad_of(1, v, place).
#ifndef HALFSTEP_PRECISION
#define HALFSTEP_PRECISION

const uint F32_INFINITY = 0x7f800000u;

// Four 16-bit patterns as the two words they fill in memory.
uvec2 pack_bits(uvec4 bits) { return uvec2(bits.x | (bits.y << 16), bits.z | (bits.w << 16)); }

#include "storage/f32.glsl"
#include "storage/f16.glsl"
#include "storage/words.glsl"

// v * factor, which is positive; what is finite but too large for STORAGE becomes the largest number of its sign, and
// infinities and NaN stay.
vec4 within_range(vec4 v, float factor) {
  bvec4 finite = lessThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(F32_INFINITY));
  return mix(v, clamp(v * factor, vec4(-LARGEST_FINITE), vec4(LARGEST_FINITE)), finite);
}

#ifdef NARROW
#include "common/storing.glsl"
#define to_quad_of(result, v, place) quad_of_bits(stored_bits(v, uint(place), uint(result)))
#else
#define to_quad_of(result, v, place) (v)
#endif
#define to_quad(v, place) to_quad_of(0, v, place)

#endif
