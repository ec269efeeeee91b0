// Rounding f32 to f16, in integers: a driver's conversion is used only where it is known to give the same bits, so every
// device and every storage tier does. The 16-bit patterns of four numbers are returned in the low halves of a uvec4.
#ifndef HALFSTEP_ROUNDING
#define HALFSTEP_ROUNDING

// Whether packHalf2x16() rounds to nearest, ties to even, subnormals too, and is worth its while: vk/device/workarounds.h.
layout(constant_id = 103) const bool DRIVER_ROUNDS = false;

const uint HALF_INFINITY = 0x7c00u;
const uint HALF_NAN = 0x7e00u;
const uint HALF_LARGEST = 0x7bffu;           // 65504
const uint F32_INFINITY = 0x7f800000u;
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
uvec4 half_bits_nearest(vec4 v) {
  if (DRIVER_ROUNDS) return half_bits_by_driver(v);
  uvec4 u = floatBitsToUint(v);
  uvec4 magnitude = u & 0x7fffffffu;
  uvec4 normal = (magnitude + (0xfffu - F32_HALF_REBIAS) + ((magnitude >> 13) & 1u)) >> 13;
  uvec4 subnormal = uvec4(roundEven(uintBitsToFloat(magnitude) * 16777216.0));
  uvec4 bits = mix(normal, subnormal, lessThan(magnitude, uvec4(F32_HALF_NORMAL)));
  bits = mix(min(bits, HALF_INFINITY), uvec4(HALF_NAN), greaterThan(magnitude, uvec4(F32_INFINITY)));
  return bits | ((u >> 16) & 0x8000u);
}

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

// v * factor, which is positive; what is finite but too large for f16 becomes the largest number of its sign, and
// infinities and NaN stay.
vec4 within_half_range(vec4 v, float factor) {
  vec4 largest = unpackHalf2x16(HALF_LARGEST).xxxx;
  bvec4 finite = lessThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(F32_INFINITY));
  return mix(v, clamp(v * factor, -largest, largest), finite);
}

// Infinities as the largest number of their sign.
uvec4 saturated(uvec4 bits) {
  return mix(bits, (bits & 0x8000u) | HALF_LARGEST, equal(bits & 0x7fffu, uvec4(HALF_INFINITY)));
}

// Four 16-bit patterns as the two words they fill in memory.
uvec2 pack_half_bits(uvec4 bits) { return uvec2(bits.x | (bits.y << 16), bits.z | (bits.w << 16)); }

#endif
