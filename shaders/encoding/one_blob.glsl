// For each coordinate x, how much of a bell-shaped kernel around it is in each of COUNT equal parts of [0, 1]. The kernel
// is 15/16 (1 - u^2)^2, where u counts parts from x: it is 0 from one part away on.
#include "common/math.glsl"

// How much of the kernel is below u.
float below(float u) {
  float v = clamp(u, -1.0, 1.0);
  float s = v * v;
  return 0.5 + v * (15.0 / 16.0 - s * (10.0 / 16.0) + s * s * (3.0 / 16.0));
}

float kernel(float u) {
  float rest = max(1.0 - u * u, 0.0);
  return 15.0 / 16.0 * rest * rest;
}

// Where a part begins, as seen from x.
float begin_of(vec4 position, uint column) {
  return float(column % COUNT) - position[column / COUNT] * float(COUNT);
}

// clamp() may lose NaN.
float feature(vec4 position, uint column) {
  float begin = begin_of(position, column);
  return is_nan(begin) ? begin : below(begin + 1.0) - below(begin);
}

vec4 slope(vec4 position, uint column) {
  float begin = begin_of(position, column);
  float v = is_nan(begin) ? begin : float(COUNT) * (kernel(begin) - kernel(begin + 1.0));
  return mix(vec4(0.0), vec4(v), equal(uvec4(column / COUNT), uvec4(0u, 1u, 2u, 3u)));
}
