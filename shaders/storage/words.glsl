// The narrow types in words of 32 bits, on every device:
//   words   f16 or bf16, chosen when a kernel is specialized: one variant for both
//   packed  f16
//   bf16
#if defined(STORAGE_words) || defined(STORAGE_packed) || defined(STORAGE_bf16)
#ifndef HALFSTEP_WORDS
#define HALFSTEP_WORDS

#if defined(STORAGE_words)
layout(constant_id = 104) const bool IS_BF16 = false;
#elif defined(STORAGE_bf16)
const bool IS_BF16 = true;
#else
const bool IS_BF16 = false;
#endif

#include "storage/bf16.glsl"

#define NARROW
#define QUAD uvec2
#define from_quad(q) (IS_BF16 ? from_bf16_quad(q) : from_half_quad(q))
#define quad_of_bits(bits) pack_bits(bits)
#define LARGEST_FINITE (IS_BF16 ? BF16_LARGEST_FINITE : HALF_LARGEST_FINITE)
#define LARGEST_BITS (IS_BF16 ? BF16_LARGEST : HALF_LARGEST)
#define ONE_BITS (IS_BF16 ? BF16_ONE : HALF_ONE)
#define SMALLEST_NORMAL (IS_BF16 ? F32_NORMAL : F32_HALF_NORMAL)
uvec4 bits_nearest(vec4 v) { return IS_BF16 ? bf16_bits_nearest(v) : half_bits_nearest(v); }
uvec4 bits_stochastic(vec4 v, uvec4 random) {
  return IS_BF16 ? bf16_bits_stochastic(v, random) : half_bits_stochastic(v, random);
}
vec4 from_bits(uvec4 bits) { return IS_BF16 ? from_bf16_bits(bits) : from_half_bits(bits); }

#endif
#endif
