// f16 or bf16 in words of 32 bits, chosen when a kernel is specialized: one variant for both.
#ifndef HALFSTEP_WORDS
#define HALFSTEP_WORDS

#if defined(STORAGE_words)
#define NARROW
#define QUAD uvec2
layout(constant_id = 104) const bool IS_BF16 = false;
#define from_quad(q) (IS_BF16 ? from_bf16_quad(q) : unpack_quad(q))
#define quad_of_bits(bits) pack_bits(bits)
#define LARGEST_FINITE (IS_BF16 ? BF16_LARGEST_FINITE : 65504.0)
#define LARGEST_BITS (IS_BF16 ? BF16_LARGEST : HALF_LARGEST)
#define ONE_BITS (IS_BF16 ? BF16_ONE : 0x3c00u)
uvec4 bits_nearest(vec4 v) { return IS_BF16 ? bf16_bits_nearest(v) : half_bits_nearest(v); }
vec4 from_bits(uvec4 bits) { return IS_BF16 ? from_bf16_bits(bits) : from_half_bits(bits); }
#endif

#endif
