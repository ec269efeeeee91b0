#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"
#include "common/rows.glsl"

// exp(x) / sum(exp(x)) over each row, or its logarithm. A row of which all elements are minus infinity, as where a mask
// hides everything, has probabilities of 0. Rows may be scores of one query for all keys, some of which it does not see:
// those count as minus infinity. Rows of QUERIES follow each other, BATCH_ROWS in a batch.
layout(constant_id = 2) const bool LOGARITHM = false;
layout(constant_id = 3) const bool CAUSAL = false;   // no keys after the query
layout(constant_id = 4) const uint WINDOW = 0u;      // keys less than this away; 0: all
layout(constant_id = 5) const bool LENGTHS = false;  // keys below the batch's length
layout(constant_id = 6) const uint QUERIES = 1u;
layout(constant_id = 7) const uint BATCH_ROWS = 1u;
layout(constant_id = 8) const bool SEGMENTS = false;  // keys of the query's segment; Lengths has that of each
layout(push_constant) uniform Push {
  uint rows;
  uint columns;
  uint quads_per_row;
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer Lengths { uint lengths[]; };

float minus_infinity() { return uintBitsToFloat(0xff800000u); }

uint segment_of(uint row, uint place) { return lengths[row / BATCH_ROWS * quads_per_row * 4u + place]; }

// The columns from x up to but not including y that count in a row.
uvec2 columns_of(uint row) {
  uvec2 range = uvec2(0u, columns);
  uint query = row % QUERIES;
  if (CAUSAL) range.y = min(range.y, query + 1u);
  if (WINDOW > 0u) range = uvec2(query + 1u - min(WINDOW, query + 1u), min(range.y, query + WINDOW));
  if (LENGTHS) range.y = min(range.y, lengths[row / BATCH_ROWS]);
  return range;
}

// Four elements of a row; minus infinity where they do not count.
vec4 elements_of(uint row, uint quad) {
  uvec2 range = columns_of(row);
  uvec4 column = uvec4(quad * 4u) + uvec4(0u, 1u, 2u, 3u);
  vec4 v = mix(vec4(minus_infinity()), from_quad(x[row * quads_per_row + quad]), lessThan(column, uvec4(range.y)));
  if (WINDOW > 0u) v = mix(v, vec4(minus_infinity()), lessThan(column, uvec4(range.x)));
  if (SEGMENTS) {
    uvec4 at = min(column, uvec4(columns - 1u));
    uvec4 found = uvec4(segment_of(row, at.x), segment_of(row, at.y), segment_of(row, at.z), segment_of(row, at.w));
    v = mix(v, vec4(minus_infinity()), notEqual(found, uvec4(segment_of(row, row % QUERIES))));
  }
  return v;
}

float largest_of(uint row) {
  vec4 largest = vec4(minus_infinity());
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) largest = max(largest, elements_of(row, quad));
  float top = max_over_lanes(max(max(largest.x, largest.y), max(largest.z, largest.w)));
  return top == minus_infinity() ? 0.0 : top;
}

void main() {
  uint row = min(own_row(), rows - 1u);
  float top = largest_of(row);
  LongSum sum = EMPTY_SUM;
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    add_term(sum, exp_or_nan(elements_of(row, quad) - top));
  }
  float total = sum_over_lanes(vec2(sum_of_elements(value_of(sum)), 0.0)).x;
  if (own_row() >= rows) return;
  bool none = total == 0.0;
  float factor = none ? 0.0 : 1.0 / total;
  float log_total = none ? 0.0 : log_or_nan(total);
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 below = elements_of(row, quad) - top;
    store(row * quads_per_row + quad, LOGARITHM ? below - log_total : exp_or_nan(below) * factor);
  }
}
