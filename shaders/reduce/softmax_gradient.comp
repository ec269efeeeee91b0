#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"
#include "common/rows.glsl"

// From y and dy, over each row: y (dy - sum(y dy)); of the logarithm of softmax, dy - exp(y) sum(dy).
layout(constant_id = 2) const bool LOGARITHM = false;
layout(push_constant) uniform Push {
  uint rows;
  uint columns;
  uint quads_per_row;
};
layout(std430, binding = 0) readonly buffer Y { QUAD y[]; };
layout(std430, binding = 1) readonly buffer DY { QUAD dy[]; };

void main() {
  uint begin = min(own_row(), rows - 1u) * quads_per_row;
  LongSum sum = EMPTY_SUM;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 gradient = from_quad(dy[begin + quad]);
    add_term(sum, LOGARITHM ? gradient : gradient * from_quad(y[begin + quad]));
  }
  float total = sum_over_lanes(vec2(sum_of_elements(value_of(sum)), 0.0)).x;
  if (own_row() >= rows) return;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 result = from_quad(y[begin + quad]);
    vec4 gradient = from_quad(dy[begin + quad]);
    store(begin + quad, LOGARITHM ? gradient - exp_or_nan(result) * total : result * (gradient - total));
  }
}
