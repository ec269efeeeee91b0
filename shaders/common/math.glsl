// Functions that some drivers implement incorrectly, and comparisons on the bits of floats. A compiler that assumes no
// NaN cannot change the latter, and after unpacking f16 they cost a software driver half as much.
#ifndef HALFSTEP_MATH
#define HALFSTEP_MATH

bool is_nan(float v) { return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u; }
bvec4 is_nan(vec4 v) { return greaterThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(0x7f800000u)); }
// Not NaN, and above 0.
bvec4 is_positive(vec4 v) { return lessThan(floatBitsToUint(v) - 1u, uvec4(0x7f800000u)); }
// Not NaN, and below 0 or -0.
bvec4 is_negative(vec4 v) { return lessThanEqual(floatBitsToUint(v) - 0x80000000u, uvec4(0x7f800000u)); }
// 0 or -0.
bvec4 is_zero(vec4 v) { return equal(floatBitsToUint(v) & 0x7fffffffu, uvec4(0u)); }

// Floats as integers in the same order, -0 before 0; NaN comes last.
ivec4 order_of(vec4 v) {
  ivec4 bits = floatBitsToInt(v);
  return mix(bits ^ ((bits >> 31) & 0x7fffffff), ivec4(0x7fffffff), is_nan(v));
}
vec4 number_at(ivec4 order) { return intBitsToFloat(order ^ ((order >> 31) & 0x7fffffff)); }

// NaN stays NaN: SwiftShader's exp() returns infinity for it, and its log() a number, which would hide an error.
vec4 exp_or_nan(vec4 v) { return mix(exp(v), v, is_nan(v)); }
float exp_or_nan(float v) { return is_nan(v) ? v : exp(v); }
float log_or_nan(float v) { return is_nan(v) ? v : log(v); }

#endif
