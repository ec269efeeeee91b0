#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 5
#define FIRST_ARGUMENT 6
#include "common/expression.glsl"
#include "common/mixed_operands.glsl"
#include "common/rows.glsl"

// dx = factor (g - mean(g) - n mean(g n)) over each row, where g = weight dy, n = (x - mean) factor, and without CENTRED
// mean(g) is left out.
layout(constant_id = 2) const bool CENTRED = true;
layout(constant_id = 3) const bool WEIGHTED = true;
layout(push_constant) uniform Push {
  uint rows;
  uint columns;
  uint quads_per_row;
};
READ_STORED(0, X, x)
READ_STORED(1, DY, dy)
layout(std430, binding = 2) readonly buffer Mean { vec4 means[]; };
layout(std430, binding = 3) readonly buffer Factor { vec4 factors[]; };
READ_STORED(4, Weight, weight)

vec4 weighted(uint begin, uint quad) {
  vec4 v = dy_at(begin + quad);
  return WEIGHTED ? v * weight_at(quad) : v;
}

void main() {
  uint row = min(own_row(), rows - 1u);
  uint begin = row * quads_per_row;
  float mean = means[row].x;
  float factor = factors[row].x;
  LongSum sum = EMPTY_SUM;
  LongSum along = EMPTY_SUM;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 g = weighted(begin, quad);  // 0 past the last column
    add_term(sum, g);
    add_term(along, g * (x_at(begin + quad) - mean) * factor);
  }
  vec2 total = vec2(sum_of_elements(value_of(sum)), sum_of_elements(value_of(along)));
  vec2 average = sum_over_lanes(total) / float(columns);
  if (!CENTRED) average.x = 0.0;
  if (own_row() >= rows) return;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 n = (x_at(begin + quad) - mean) * factor;
    store(begin + quad, factor * (weighted(begin, quad) - average.x - n * average.y));
  }
}
