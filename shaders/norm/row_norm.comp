#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 5
#define FIRST_ARGUMENT 6
#include "common/expression.glsl"
#include "common/mixed_operands.glsl"
#include "common/rows.glsl"

// (x - mean) / sqrt(variance + epsilon) * weight + bias over each row of x; without CENTRED, the mean is taken to be 0.
// The differences from the mean are squared in a pass of their own, so that nothing cancels.
layout(constant_id = 2) const bool CENTRED = true;
layout(constant_id = 3) const bool WEIGHTED = true;
layout(constant_id = 4) const bool BIASED = true;
layout(push_constant) uniform Push {
  uint rows;
  uint columns;
  uint quads_per_row;
  float epsilon;
};
READ_STORED(0, X, x)
READ_STORED(1, Weight, weight)
READ_STORED(2, Bias, bias)
layout(std430, binding = 3) writeonly buffer Mean { vec4 means[]; };
layout(std430, binding = 4) writeonly buffer Factor { vec4 factors[]; };

// Sums differences from the first element: the mean of a constant is the constant, and that of a row far from 0 keeps
// the digits in which its elements differ.
float mean_of(uint begin) {
  float first = x_at(begin).x;
  LongSum sum = EMPTY_SUM;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    add_term(sum, keep_columns(x_at(begin + quad) - first, quad * 4u, columns));
  }
  return first + sum_over_lanes(vec2(sum_of_elements(value_of(sum)), 0.0)).x / float(columns);
}

float variance_of(uint begin, float mean) {
  LongSum sum = EMPTY_SUM;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 difference = keep_columns(x_at(begin + quad) - mean, quad * 4u, columns);
    add_term(sum, difference * difference);
  }
  return sum_over_lanes(vec2(sum_of_elements(value_of(sum)), 0.0)).x / float(columns);
}

void main() {
  uint row = min(own_row(), rows - 1u);
  uint begin = row * quads_per_row;
  float mean = CENTRED ? mean_of(begin) : 0.0;
  float factor = 1.0 / sqrt(variance_of(begin, mean) + epsilon);
  if (own_row() >= rows) return;
  if (lane() == 0u) {
    means[row] = vec4(mean, 0.0, 0.0, 0.0);
    factors[row] = vec4(factor, 0.0, 0.0, 0.0);
  }
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 v = (x_at(begin + quad) - mean) * factor;
    if (WEIGHTED) v *= weight_at(quad);
    if (BIASED) v += bias_at(quad);
    store(begin + quad, v);
  }
}
