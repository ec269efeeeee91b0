#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/math.glsl"
#include "loss/row_loss.glsl"

// The fraction of a row's target probability that is spread over all classes.
layout(constant_id = 3) const float SMOOTHING = 0.0;

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

// The differences of four logits from the largest; 0 past the last class.
vec4 below(float top, uint row, uint quad) {
  return keep_columns(logits_of(row, quad) - top, quad * 4u, classes);
}

// The label smoothing term. Without smoothing it is 0, not 0 times the sum of differences, which may be infinite.
float smoothed(float deviations) { return SMOOTHING > 0.0 ? SMOOTHING * (deviations / float(classes)) : 0.0; }

// Returns -log softmax(logits)[label], or with smoothing its weighted mean with that of all classes; the largest logit;
// and the logarithm of the sum of exp(logit - largest). The last two are returned separately: for large logits, their
// sum would lose the bits of the logarithm. A label that is not a class gives NaN. As in PyTorch, a row whose largest
// logit is infinite, of either sign, gives NaN.
vec3 row_value(uint row, uint label) {
  vec4 largest = vec4(minus_infinity());
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) largest = max(largest, logits_of(row, quad));
  float top = max_over_lanes(max(max(largest.x, largest.y), max(largest.z, largest.w)));
  LongSum sums = EMPTY_SUM;  // where one class has nearly all, each of 150,000 others counts too
  LongSum deviations = EMPTY_SUM;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    add_term(sums, exp_or_nan(logits_of(row, quad) - top));
    if (SMOOTHING > 0.0) add_term(deviations, below(top, row, quad));
  }
  vec2 total = sum_over(LANES, vec2(dot(value_of(sums), vec4(1.0)), dot(value_of(deviations), vec4(1.0))));
  float log_sum = log_or_nan(total.x);
  if (label >= classes) return vec3(uintBitsToFloat(0x7fc00000u));
  float apart = (1.0 - SMOOTHING) * (top - logits_of(row, label >> 2)[label & 3u]);
  return vec3(log_sum + apart - smoothed(total.y), top, log_sum);
}
