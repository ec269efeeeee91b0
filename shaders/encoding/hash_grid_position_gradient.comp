#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"
#include "encoding/hash_grid.glsl"

// How the features change with each coordinate, times the gradient. Coordinates outside of the grid change nothing.
layout(std430, binding = 0) readonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 1) readonly buffer Table { QUAD table[]; };
layout(std430, binding = 2) readonly buffer DY { QUAD dy[]; };
layout(std430, binding = 3) writeonly buffer Result { vec4 result[]; };

// Of the features of a level that are in one quad of the result.
vec4 slope_in(Cell cell, uint quad, vec4 gradient) {
  vec4 sum = vec4(0.0);
  for (uint vertex = 0u; vertex < VERTICES; vertex++) {
    bvec4 sides = sides_of(vertex);
    vec4 w = weights_of(cell, sides);
    uint element = element_of(entry_of(cell, sides), quad);
    float change = dot(features_at(from_quad(table[element / 4u]), element), gradient);
    vec4 others = vec4(w.y * w.z * w.w, w.x * w.z * w.w, w.x * w.y * w.w, w.x * w.y * w.z);
    sum += change * mix(-others, others, sides);
  }
  return sum;
}

void main() {
  uint row = linear_invocation();
  if (row >= rows) return;
  vec4 position = positions[row];
  vec4 sum = vec4(0.0);
  for (uint element = 0u; element < LEVELS * FEATURES; element += FEATURES_PER_QUAD) {
    uint quad = element / 4u;
    uint level = element / FEATURES;
    vec4 gradient = features_from(from_quad(dy[row * ROW_QUADS + quad]), element % 4u);
    sum += slope_in(cell_of(position, level), quad, gradient) * float(resolutions[level]);
  }
  bvec4 inside = equal(clamp(position, vec4(0.0), vec4(1.0)), position);
  vec4 v = keep_columns(mix(vec4(0.0), sum, inside), 0u, DIMENSIONS);
  result[row] = any(is_nan(position)) ? keep_columns(vec4(uintBitsToFloat(0x7fc00000u)), 0u, DIMENSIONS) : v;
}
