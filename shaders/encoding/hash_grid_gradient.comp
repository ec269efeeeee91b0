#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"
#define FIXED_POINT_SUMS sums
layout(std430, binding = 2) buffer Sums { uint sums[]; };
#include "encoding/fixed_point.glsl"
#include "encoding/hash_grid.glsl"

// Adds the gradient at each position, times the weight of each vertex of the cell around it, to that of the vertex's
// features. A NaN position has made its results NaN, and so their gradients.
layout(std430, binding = 0) readonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 1) readonly buffer DY { QUAD dy[]; };

void add_to_vertices(Cell cell, uint quad, vec4 gradient, int exponent) {
  for (uint vertex = 0u; vertex < VERTICES; vertex++) {
    bvec4 sides = sides_of(vertex);
    uint element = element_of(entry_of(cell, sides), quad);
    vec4 terms = product_of(weights_of(cell, sides)) * gradient;
    add_to_sum(element, terms.x, exponent);
    if (FEATURES > 1u) add_to_sum(element + 1u, terms.y, exponent);
    if (FEATURES > 2u) {
      add_to_sum(element + 2u, terms.z, exponent);
      add_to_sum(element + 3u, terms.w, exponent);
    }
  }
}

void main() {
  uint i = linear_invocation();
  if (i >= rows * ROW_QUADS) return;
  uint largest = sums[0];
  if (largest >= F32_INFINITY) return;
  int exponent = exponent_of_sums(largest, rows);
  uint row = i % rows;
  uint quad = i / rows;
  vec4 gradient = from_quad(dy[row * ROW_QUADS + quad]);
  for (uint first = 0u; first < 4u && level_of(quad, first) < LEVELS; first += FEATURES_PER_QUAD) {
    Cell cell = cell_of(positions[row], level_of(quad, first));
    add_to_vertices(cell, quad, features_from(gradient, first), exponent);
  }
}
