#version 450
// One operation on f32 or 32-bit integers, given and stored as their bits.
//! OPERATION = add sub mul fma mul_add mul_sub div sqrt inversesqrt exp exp2 log log2 tanh sin cos pow floor ceil trunc round_even abs neg min max less to_int to_uint from_int from_uint pack_half unpack_half unpack_second bits imul umulhi udiv umod shl shr sar extract msb bitcount
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer First {
  uint first[];
};
layout(set = 0, binding = 1) readonly buffer Second {
  uint second[];
};
layout(set = 0, binding = 2) readonly buffer Third {
  uint third[];
};
layout(set = 0, binding = 3) writeonly buffer Result {
  uint result[];
};
layout(push_constant) uniform Push {
  uint count;
};

#if defined(OPERATION_imul)
#define VALUE uint(int(i) * int(j))
#elif defined(OPERATION_umulhi)
#define VALUE high_of(i, j)
#elif defined(OPERATION_udiv)
#define VALUE i / max(j, 1u)
#elif defined(OPERATION_umod)
#define VALUE i % max(j, 1u)
#elif defined(OPERATION_shl)
#define VALUE i << (j & 31u)
#elif defined(OPERATION_shr)
#define VALUE i >> (j & 31u)
#elif defined(OPERATION_sar)
#define VALUE uint(int(i) >> (j & 31u))
#elif defined(OPERATION_extract)
#define VALUE bitfieldExtract(i, int(j & 15u), int(k & 15u) + 1)
#elif defined(OPERATION_msb)
#define VALUE uint(findMSB(i))
#elif defined(OPERATION_bitcount)
#define VALUE uint(bitCount(i))
#elif defined(OPERATION_to_int)
#define VALUE uint(int(a))
#elif defined(OPERATION_to_uint)
#define VALUE uint(a)
#elif defined(OPERATION_from_int)
#define VALUE floatBitsToUint(float(int(i)))
#elif defined(OPERATION_from_uint)
#define VALUE floatBitsToUint(float(i))
#elif defined(OPERATION_pack_half)
#define VALUE packHalf2x16(vec2(a, b))
#elif defined(OPERATION_unpack_half)
#define VALUE floatBitsToUint(unpackHalf2x16(i).x)
#elif defined(OPERATION_unpack_second)
#define VALUE floatBitsToUint(unpackHalf2x16(i).y)
#elif defined(OPERATION_bits)
#define VALUE floatBitsToUint(a)
#elif defined(OPERATION_less)
#define VALUE (a < b ? 1u : 0u) | (a <= b ? 2u : 0u) | (a == b ? 4u : 0u) | (isnan(a) ? 8u : 0u) | (isinf(a) ? 16u : 0u)
#elif defined(OPERATION_add)
#define NUMBER a + b
#elif defined(OPERATION_sub)
#define NUMBER a - b
#elif defined(OPERATION_mul)
#define NUMBER a* b
#elif defined(OPERATION_fma)
#define NUMBER fma(a, b, c)
#elif defined(OPERATION_mul_add)
#define NUMBER a* b + c
#elif defined(OPERATION_mul_sub)
#define NUMBER a* b - c
#elif defined(OPERATION_div)
#define NUMBER a / b
#elif defined(OPERATION_sqrt)
#define NUMBER sqrt(a)
#elif defined(OPERATION_inversesqrt)
#define NUMBER inversesqrt(a)
#elif defined(OPERATION_exp)
#define NUMBER exp(a)
#elif defined(OPERATION_exp2)
#define NUMBER exp2(a)
#elif defined(OPERATION_log)
#define NUMBER log(a)
#elif defined(OPERATION_log2)
#define NUMBER log2(a)
#elif defined(OPERATION_tanh)
#define NUMBER tanh(a)
#elif defined(OPERATION_sin)
#define NUMBER sin(a)
#elif defined(OPERATION_cos)
#define NUMBER cos(a)
#elif defined(OPERATION_pow)
#define NUMBER pow(a, b)
#elif defined(OPERATION_floor)
#define NUMBER floor(a)
#elif defined(OPERATION_ceil)
#define NUMBER ceil(a)
#elif defined(OPERATION_trunc)
#define NUMBER trunc(a)
#elif defined(OPERATION_round_even)
#define NUMBER roundEven(a)
#elif defined(OPERATION_abs)
#define NUMBER abs(a)
#elif defined(OPERATION_neg)
#define NUMBER - a
#elif defined(OPERATION_min)
#define NUMBER min(a, b)
#elif defined(OPERATION_max)
#define NUMBER max(a, b)
#endif

uint high_of(uint x, uint y) {
  uint high, low;
  umulExtended(x, y, high, low);
  return high;
}

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (at >= count) return;
  const uint i = first[at];
  const uint j = second[at];
  const uint k = third[at];
  const float a = uintBitsToFloat(i);
  const float b = uintBitsToFloat(j);
  const float c = uintBitsToFloat(k);
#ifdef NUMBER
  precise const float number = NUMBER;
  result[at] = floatBitsToUint(number);
#else
  result[at] = VALUE;
#endif
}
