#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
// Counts the numbers of which the driver makes another f16 than half_bits_by_integers() does. An invocation has numbers
// of one sign, exponent and beginning of a significand, and the quad of the result with its index.
#include "common/indexing.glsl"
#define STORAGE_f32
#include "common/precision.glsl"

layout(push_constant) uniform Push { uint count; };  // of invocations
layout(std430, binding = 0) writeonly buffer Wrong { vec4 wrong[]; };

const uint LOW_BITS = 14u;  // 13 of the significand are lost where f16 is normal; the next decides ties
const int ROUNDS = 16;

// The sign and the first bits of a number: of all exponents from 2^-27 to 2^34, and those of zero and of infinity.
uint high_bits(uint i) {
  uint sign = i >> 15;
  uint exponent = (i >> 9) % 64u;
  uint significand = i % 512u;
  exponent = exponent == 63u ? 255u : exponent == 62u ? 0u : exponent + 100u;
  return sign << 31 | exponent << 23 | significand << LOW_BITS;
}

// Numbers about every quarter of what is lost, and any.
uvec4 low_bits(uint i, int round) {
  uvec4 lane = uvec4(0u, 1u, 2u, 3u);
  uint quarter = uint(round) << 11;
  uvec4 about = quarter + lane - 1u;
  uvec4 any = (i * 4u + lane + uint(round) * 0x9e3779b9u) * 0x85ebca6bu >> 7;
  return (round < 8 ? about : any) & ((1u << LOW_BITS) - 1u);
}

bvec4 is_nan(uvec4 half_bits) { return greaterThan(half_bits & 0x7fffu, uvec4(HALF_INFINITY)); }

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  vec4 found = vec4(0.0);
  for (int round = 0; round < ROUNDS; round++) {
    vec4 v = uintBitsToFloat(high_bits(i) | low_bits(i, round));
    // The end of a multiply-add: compilers join it with a conversion, and a device might not round to f32 in between.
    if (round >= 8) v = fma(v, vec4(uintBitsToFloat(0x3f800000u | (i * 0x9e3779b9u) >> 9)), v);
    uvec4 by_driver = half_bits_by_driver(v);
    uvec4 by_integers = half_bits_by_integers(v);
    bvec4 both_nan = equal(ivec4(is_nan(by_driver)) + ivec4(is_nan(by_integers)), ivec4(2));
    bvec4 differs = notEqual(by_driver, by_integers);
    found += mix(vec4(differs), vec4(0.0), both_nan);
  }
  wrong[i] = found;
}
