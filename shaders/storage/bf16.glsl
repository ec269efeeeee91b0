// bfloat16: the upper half of an f32, with its eight bits of exponent and seven of its significand. As a STORAGE it is in
// words (words.glsl): a quad is one load either way, a shift and a mask widen it, and no device's support is needed.
#ifndef HALFSTEP_BF16
#define HALFSTEP_BF16

const uint BF16_INFINITY = 0x7f80u;
const uint BF16_NAN = 0x7fc0u;
const uint F32_BF16_RANGE_END = 0x7f7f8000u;  // half-way from the largest number to what would be the next
const float BF16_LARGEST_FINITE = 3.3895313892515355e38;
const uint BF16_LARGEST = 0x7f7fu;
const uint BF16_ONE = 0x3f80u;
const uint F32_NORMAL = 0x00800000u;  // the smallest normal f32, which is bf16's too

vec4 from_bf16_bits(uvec4 bits) { return uintBitsToFloat(bits << 16); }
vec4 from_bf16_quad(uvec2 q) { return uintBitsToFloat(uvec4(q.x << 16, q.x & 0xffff0000u, q.y << 16, q.y & 0xffff0000u)); }

// From bits without their signs, which may be those of infinity where `v` is NaN.
uvec4 with_sign(uvec4 bits, uvec4 v) {
  bits = mix(bits, uvec4(BF16_NAN), greaterThan(v & 0x7fffffffu, uvec4(F32_INFINITY)));
  return bits | ((v >> 16) & 0x8000u);
}

uvec4 bf16_bits_nearest(vec4 v) {
  uvec4 u = floatBitsToUint(v);
  uvec4 magnitude = u & 0x7fffffffu;
  return with_sign((magnitude + 0x7fffu + ((magnitude >> 16) & 1u)) >> 16, u);
}

// 16 of the random bits are used. A value below F32_BF16_RANGE_END never becomes infinity.
uvec4 bf16_bits_stochastic(vec4 v, uvec4 random) {
  uvec4 u = floatBitsToUint(v);
  uvec4 magnitude = u & 0x7fffffffu;
  uvec4 bits = min((magnitude + (random & 0xffffu)) >> 16, uvec4(BF16_LARGEST));
  bits = mix(bits, uvec4(BF16_INFINITY), greaterThanEqual(magnitude, uvec4(F32_BF16_RANGE_END)));
  return with_sign(bits, u);
}

#endif
