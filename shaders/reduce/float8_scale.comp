#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/precision.glsl"
#include "common/rows.glsl"

// The largest magnitude in each of `rows` parts of a tensor, of `row_quads` quads: as the first element of a quad. More
// than any type but f32 has stands for infinity and NaN. The last dispatch of several finds it for all, and from that
// how the tensor is scaled to be stored in 8 bits (engine/ops/gemm/float8.h).
layout(constant_id = 2) const bool IS_LAST = false;
layout(push_constant) uniform Push {
  uint rows;
  uint row_quads;
  uint quads;
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Largest { vec4 largest[]; };  // of the last dispatch: the scale
layout(std430, binding = 2) writeonly buffer Unit { vec4 unit[]; };        // its reciprocal

const float UNKNOWN = 3.4e38;

vec4 magnitude(vec4 v) {
  uvec4 bits = floatBitsToUint(v) & 0x7fffffffu;
  return mix(uintBitsToFloat(bits), vec4(UNKNOWN), greaterThanEqual(bits, uvec4(0x7f800000u)));
}

void main() {
  uint row = min(own_row(), rows - 1u);
  uint end = min((row + 1u) * row_quads, quads);
  vec4 found = vec4(0.0);
  for (uint quad = row * row_quads + lane(); quad < end; quad += LANES) found = max(found, magnitude(from_quad(x[quad])));
  float all = max_over_lanes(max(max(found.x, found.y), max(found.z, found.w)));
  if (own_row() >= rows || lane() > 0u) return;
  if (!IS_LAST) {
    largest[row] = vec4(all, 0.0, 0.0, 0.0);
    return;
  }
  // The power of two that brings it to 1.75 or less, but more than half of that, and no larger than 2^60; NaN where it is
  // unknown. In integers: a quotient may be one unit off.
  uint bits = floatBitsToUint(all);
  uint above = (bits & 0x7fffffu) > 0x600000u ? 1u : 0u;  // its significand is over 1.75
  uint exponent = min(254u - (bits >> 23) - above, 187u) << 23;
  bool known = all < UNKNOWN;
  float not_a_number = uintBitsToFloat(0x7fc00000u);
  largest[0] = vec4(known ? uintBitsToFloat(exponent) : not_a_number, 0.0, 0.0, 0.0);
  unit[0] = vec4(known ? uintBitsToFloat((254u << 23) - exponent) : not_a_number, 0.0, 0.0, 0.0);
}
