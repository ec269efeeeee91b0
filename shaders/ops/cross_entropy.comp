#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
#include "common/math.glsl"
#include "common/rows.glsl"

float max_over_lanes(float v) {
  uint i = gl_LocalInvocationID.x;
  if (LANES > 1u) exchanged[i].x = v;
  for (uint step = LANES / 2u; step > 0u; step /= 2u) {
    barrier();
    v = max(v, exchanged[i ^ step].x);
    barrier();
    exchanged[i].x = v;
  }
  return v;
}

// -log softmax(logits)[label], and the logarithm of the sum of the exponentials. A label that is no class gives NaN.
vec2 row_value(uint row, uint label) {
  vec4 largest = vec4(LOWEST);
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) largest = max(largest, logits_of(row, quad));
  float top = max_over_lanes(max(max(largest.x, largest.y), max(largest.z, largest.w)));
  vec4 sums = vec4(0.0);
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) sums += exp_or_nan(logits_of(row, quad) - top);
  float log_sum = log_or_nan(sum_over(LANES, vec2(dot(sums, vec4(1.0)), 0.0)).x);
  if (label >= classes) return vec2(uintBitsToFloat(0x7fc00000u));
  return vec2(log_sum + (top - logits_of(row, label >> 2)[label & 3u]), log_sum + top);
}
