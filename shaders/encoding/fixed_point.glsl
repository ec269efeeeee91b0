// Sums of many f32 at many places in 64-bit fixed point: of integers, so that their order, which nobody controls, does
// not change a bit. Atomic operations on two words of 32 bits suffice: whoever makes the lower one overflow adds to the
// upper one. Every number is at most the largest of them in magnitude and there are no more than `terms` in a sum, which
// leaves each 62 - log2(terms) bits: 2^-38 of the largest among 2^24. An infinity or NaN among them makes all sums NaN.
#ifndef HALFSTEP_FIXED_POINT
#define HALFSTEP_FIXED_POINT

// The first quad has the bits of the largest magnitude; then low and high words.
const uint FIRST_SUM = 4u;

// The sums are integers times 2^-exponent.
int exponent_of_sums(uint largest, uint terms) {
  return 62 - (findMSB(terms - 1u) + 1) - (max(int(largest >> 23u), 1) - 126);
}

// v * 2^exponent, whose magnitude is below 2^63, as {low, high}.
uvec2 to_fixed(float v, int exponent) {
  uint bits = floatBitsToUint(v);
  int biased = int((bits >> 23u) & 0xffu);
  uint mantissa = (bits & 0x7fffffu) | (biased == 0 ? 0u : 0x800000u);
  int shift = max(biased, 1) - 150 + exponent;
  uvec2 fixed_point = uvec2(0u);
  if (shift >= 32) {
    fixed_point.y = mantissa << uint(shift - 32);
  } else if (shift > 0) {
    fixed_point = uvec2(mantissa << uint(shift), mantissa >> uint(32 - shift));
  } else if (shift == 0) {
    fixed_point.x = mantissa;
  } else if (shift >= -24) {
    fixed_point.x = (mantissa + (1u << uint(-shift - 1))) >> uint(-shift);
  }
  if (bits >= 0x80000000u) fixed_point = uvec2(~fixed_point.x + 1u, ~fixed_point.y + (fixed_point.x == 0u ? 1u : 0u));
  return fixed_point;
}

// v, which is not negative, times 2^-exponent.
float magnitude_of(uvec2 v, int exponent) {
  if ((v.x | v.y) == 0u) return 0.0;
  int top = v.y != 0u ? 32 + findMSB(v.y) : findMSB(v.x);
  // What is below the smallest normal number has fewer bits.
  int dropped = max(top - 23, exponent - 149);
  uint mantissa = 0u;
  if (dropped <= 0) {
    mantissa = v.x << uint(-dropped);
  } else if (dropped <= 64) {
    uint half_unit = dropped <= 32 ? (v.x >> uint(dropped - 1)) & 1u : (v.y >> uint(dropped - 33)) & 1u;
    uint kept = dropped < 32 ? (v.x >> uint(dropped)) | (v.y << uint(32 - dropped))
                             : dropped < 64 ? v.y >> uint(dropped - 32) : 0u;
    mantissa = kept + half_unit;
  }
  // A mantissa of 2^24 carries into the exponent, and 2^23 is the first with the exponent 1.
  int biased = dropped - exponent + 149;
  if (biased >= 254) return uintBitsToFloat(0x7f800000u);
  return uintBitsToFloat((uint(biased) << 23u) + mantissa);
}

float from_fixed(uvec2 v, int exponent) {
  if (v.y < 0x80000000u) return magnitude_of(v, exponent);
  return -magnitude_of(uvec2(~v.x + 1u, ~v.y + (v.x == 0u ? 1u : 0u)), exponent);
}

#ifdef FIXED_POINT_SUMS
void add_to_sum(uint place, float v, int exponent) {
  uvec2 term = to_fixed(v, exponent);
  uint at = FIRST_SUM + 2u * place;
  if (term.x != 0u && atomicAdd(FIXED_POINT_SUMS[at], term.x) > ~term.x) term.y++;
  if (term.y != 0u) atomicAdd(FIXED_POINT_SUMS[at + 1u], term.y);
}
#endif

#endif
