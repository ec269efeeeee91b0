#version 440
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"

// Cosine and sine of the angle of each position and pair of elements, four pairs at a time: {positions, 2, pairs}. The
// angle is position * frequency; frequencies are counted in turns per position, start * ratio^pair, with as many bits as
// two f32 have. So only the fraction of a turn is rounded, also at positions in the millions.
const int POWERS = 12;  // pairs up to 4095
layout(push_constant) uniform Push {
  uint invocations;
  uint row_quads;  // of pairs
  uint offset;     // the first position
  uint unused;
  vec2 start;  // the sum of two f32
  vec2 powers[POWERS];  // ratio^(2^i)
};
layout(std430, binding = 0) writeonly buffer Table { vec4 table[]; };

// The sum of two f32; the second is below the unit of the first.
struct Wide {
  vec4 high;
  vec4 low;
};

// v without the lower half of its bits.
vec4 upper_half(vec4 v) { return uintBitsToFloat(floatBitsToUint(v) & 0xfffff000u); }

Wide product(Wide a, Wide b) {
  precise vec4 a_high = upper_half(a.high);
  precise vec4 a_low = a.high - a_high;
  precise vec4 b_high = upper_half(b.high);
  precise vec4 b_low = b.high - b_high;
  precise vec4 p = a.high * b.high;
  precise vec4 e = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low;
  precise vec4 rest = e + (a.high * b.low + a.low * b.high);
  precise vec4 high = p + rest;
  precise vec4 low = rest - (high - p);
  return Wide(high, low);
}

Wide frequency_of(uvec4 pair) {
  Wide result = Wide(vec4(start.x), vec4(start.y));
  // Not unrolled: spirv-opt forgets what is precise in the copies.
  for (int i = 0; i < POWERS; i++) {
    bvec4 has = notEqual((pair >> uint(i)) & 1u, uvec4(0u));
    Wide factor = Wide(mix(vec4(1.0), vec4(powers[i].x), has), mix(vec4(0.0), vec4(powers[i].y), has));
    result = product(result, factor);
  }
  return result;
}

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  uint position = i / row_quads + offset;
  uint quad = i % row_quads;
  Wide turns = product(frequency_of(uvec4(quad * 4u) + uvec4(0u, 1u, 2u, 3u)), Wide(vec4(float(position)), vec4(0.0)));
  precise vec4 fraction = turns.high - floor(turns.high + 0.5) + turns.low;
  precise vec4 quarter = floor(fraction * 4.0 + 0.5);
  precise vec4 angle = (fraction - quarter * 0.25) * 6.28318531;  // from -pi / 4 to pi / 4
  vec4 s = angle * angle;
  vec4 sine = angle + angle * s * (s * (s * (s * (1.0 / 362880.0) - 1.0 / 5040.0) + 1.0 / 120.0) - 1.0 / 6.0);
  vec4 cosine = 1.0 + s * (s * (s * (s * (1.0 / 40320.0) - 1.0 / 720.0) + 1.0 / 24.0) - 0.5);
  ivec4 turned = ivec4(quarter) & 3;
  bvec4 swapped = notEqual(turned & 1, ivec4(0));
  vec4 c = mix(cosine, sine, swapped);
  vec4 t = mix(sine, cosine, swapped);
  uint at = i / row_quads * 2u * row_quads + quad;
  table[at] = mix(c, -c, notEqual((turned + 1) & 2, ivec4(0)));
  table[at + row_quads] = mix(t, -t, notEqual(turned & 2, ivec4(0)));
}
