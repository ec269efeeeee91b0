// Losses that are the mean of an elementwise function of two tensors a and b: that function, and its derivatives for a
// and for b.
#include "common/indexing.glsl"
#include "common/math.glsl"
#include "common/precision.glsl"

layout(push_constant) uniform Push {
  uint quads;
  uint quads_per_row;
  uint columns;
  uint slices;
  float factor;  // 1 / elements
  float parameter;
};
layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) readonly buffer B { QUAD b[]; };

vec4 real_columns(vec4 v, uint i) { return keep_columns(v, i % quads_per_row * 4u, columns); }

#if defined(LOSS_binary_cross_entropy)
// log(1 + e) for e from 0 to 1. If adding 1 would lose digits of e, uses the first terms of the series.
vec4 log_1_plus(vec4 e) {
  return mix(log(1.0 + e), e * (1.0 - e * (0.5 - e * (1.0 / 3.0 - e * 0.25))), lessThan(e, vec4(0.03)));
}
// a is a logit, b the target probability: -b log(sigmoid(a)) - (1 - b) log(1 - sigmoid(a)), without overflow.
vec4 loss(vec4 a, vec4 b) { return max(a, 0.0) - a * b + log_1_plus(exp(-abs(a))); }
vec4 slope_a(vec4 a, vec4 b) { return 1.0 / (1.0 + exp_or_nan(-a)) - b; }
vec4 slope_b(vec4 a, vec4 b) { return -a; }
#else
#if defined(LOSS_mse_loss)
vec4 loss_of(vec4 d) { return d * d; }
vec4 slope_of(vec4 d) { return 2.0 * d; }
#elif defined(LOSS_l1_loss)
vec4 loss_of(vec4 d) { return abs(d); }
vec4 slope_of(vec4 d) { return mix(sign(d), d, is_nan(d)); }
#else
// huber_loss, with `parameter` as delta: the derivative of the square, limited to +-delta.
vec4 slope_of(vec4 d) { return mix(clamp(d, -parameter, parameter), d, is_nan(d)); }
vec4 loss_of(vec4 d) {
  vec4 near = slope_of(d);
  return near * (d - 0.5 * near);
}
#endif
vec4 loss(vec4 a, vec4 b) { return loss_of(a - b); }
vec4 slope_a(vec4 a, vec4 b) { return slope_of(a - b); }
vec4 slope_b(vec4 a, vec4 b) { return -slope_of(a - b); }
#endif
