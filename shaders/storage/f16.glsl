// IEEE half: five bits of exponent, ten of significand. Every kernel has its arithmetic on bits, since sums inside
// products may be kept in it whatever the tensors are; as a STORAGE, f16, it is f16vec4, on devices with 16-bit storage.
// words.glsl has the same bytes for devices without.
// Numbers are rounded in integers: a driver's conversion is used only where it is known to give the same bits, so every
// device and every storage tier does.
//
// The 16-bit quads are converted where they are loaded or stored, in macros: a function that takes one would need the
// capability for f16 arithmetic, which devices with 16-bit storage may lack.
#ifndef HALFSTEP_F16
#define HALFSTEP_F16

#if defined(STORAGE_f16)
#extension GL_EXT_shader_16bit_storage : require
#endif

// Whether packHalf2x16() is known to round to nearest, ties to even, subnormals too: plan::Float16::rounded_by_driver.
layout(constant_id = 103) const bool DRIVER_ROUNDS = false;

const uint HALF_INFINITY = 0x7c00u;
const uint HALF_NAN = 0x7e00u;
const uint HALF_LARGEST = 0x7bffu;
const float HALF_LARGEST_FINITE = 65504.0;
const uint HALF_ONE = 0x3c00u;
const uint F32_HALF_RANGE_END = 0x47800000u; // 65536: from here on, infinity
const uint F32_HALF_NORMAL = 0x38800000u;    // 2^-14, the smallest normal half
const uint F32_HALF_REBIAS = 0x38000000u;    // difference of the exponent biases, 112, in place

// Where v (sign removed, as bits) is too small for a normal half, its significand counts units of 2^(exponent - 150);
// a subnormal half counts units of 2^-24, so the significand loses 126 - exponent bits.
uvec4 subnormal_significand(uvec4 magnitude) { return (magnitude & 0x7fffffu) | 0x800000u; }
uvec4 subnormal_shift(uvec4 magnitude) { return 126u - min(magnitude >> 23, uvec4(126u)); }

uvec4 with_specials(uvec4 bits, uvec4 magnitude) {
  uvec4 special = mix(uvec4(HALF_INFINITY), uvec4(HALF_NAN), greaterThan(magnitude, uvec4(F32_INFINITY)));
  return mix(bits, special, greaterThanEqual(magnitude, uvec4(F32_HALF_RANGE_END)));
}

// The same but for NaN, of which more bits may be left.
uvec4 half_bits_by_driver(vec4 v) {
  uvec2 words = uvec2(packHalf2x16(v.xy), packHalf2x16(v.zw));
  return uvec4(words.x & 0xffffu, words.x >> 16, words.y & 0xffffu, words.y >> 16);
}

// To nearest, ties to even; 65520 and above become infinity. Nothing is rounded but by integers and roundEven(): the
// scaling of what becomes subnormal is exact, whatever the driver's rounding mode.
uvec4 half_bits_by_integers(vec4 v) {
  uvec4 u = floatBitsToUint(v);
  uvec4 magnitude = u & 0x7fffffffu;
  uvec4 normal = (magnitude + (0xfffu - F32_HALF_REBIAS) + ((magnitude >> 13) & 1u)) >> 13;
  uvec4 subnormal = uvec4(roundEven(uintBitsToFloat(magnitude) * 16777216.0));
  uvec4 bits = mix(normal, subnormal, lessThan(magnitude, uvec4(F32_HALF_NORMAL)));
  bits = mix(min(bits, HALF_INFINITY), uvec4(HALF_NAN), greaterThan(magnitude, uvec4(F32_INFINITY)));
  return bits | ((u >> 16) & 0x8000u);
}

uvec4 half_bits_nearest(vec4 v) { return DRIVER_ROUNDS ? half_bits_by_driver(v) : half_bits_by_integers(v); }

// Up or down with the probability that makes the expected value v, from 32 random bits an element (13 used for
// normals, as many as there are to lose for subnormals). A value below 65520 never becomes infinity.
uvec4 half_bits_stochastic(vec4 v, uvec4 random) {
  uvec4 u = floatBitsToUint(v);
  uvec4 magnitude = u & 0x7fffffffu;
  uvec4 normal = (magnitude + (random & 0x1fffu) - F32_HALF_REBIAS) >> 13;
  normal = mix(normal, min(normal, uvec4(HALF_LARGEST)), lessThan(magnitude, uvec4(0x477ff000u)));
  normal = mix(normal, uvec4(HALF_INFINITY), greaterThanEqual(magnitude, uvec4(0x477ff000u)));
  uvec4 wanted = subnormal_shift(magnitude);
  uvec4 shift = min(wanted, uvec4(31u));
  uvec4 m = subnormal_significand(magnitude) >> min(wanted - shift, uvec4(31u));
  uvec4 subnormal = (m + (random & ((uvec4(1u) << shift) - 1u))) >> shift;
  subnormal = mix(subnormal, uvec4(0u), lessThan(magnitude, uvec4(0x00800000u)));
  uvec4 bits = mix(normal, subnormal, lessThan(magnitude, uvec4(F32_HALF_NORMAL)));
  return with_specials(bits, magnitude) | ((u >> 16) & 0x8000u);
}

vec4 from_half_quad(uvec2 q) { return vec4(unpackHalf2x16(q.x), unpackHalf2x16(q.y)); }

// The four values that 16-bit patterns stand for; exact.
vec4 from_half_bits(uvec4 bits) { return from_half_quad(pack_bits(bits)); }

// A number as f16 has it, to nearest.
vec4 rounded_to_half(vec4 v) { return from_half_bits(half_bits_nearest(v)); }

#if defined(STORAGE_f16)
#define NARROW
#define QUAD f16vec4
#define from_quad(q) vec4(q)
#define quad_of_bits(bits) f16vec4(from_half_bits(bits))
#define LARGEST_FINITE HALF_LARGEST_FINITE
#define LARGEST_BITS HALF_LARGEST
#define ONE_BITS HALF_ONE
#define SMALLEST_NORMAL F32_HALF_NORMAL
uvec4 bits_nearest(vec4 v) { return half_bits_nearest(v); }
uvec4 bits_stochastic(vec4 v, uvec4 random) { return half_bits_stochastic(v, random); }
vec4 from_bits(uvec4 bits) { return from_half_bits(bits); }
#endif

#endif
