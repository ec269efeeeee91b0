#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"
#include "encoding/hash_grid.glsl"

// The features of each level at each position. Adjacent invocations have different positions and the same levels, whose
// entries are then in the caches.
layout(std430, binding = 0) readonly buffer Positions { vec4 positions[]; };
layout(std430, binding = 1) readonly buffer Table { QUAD table[]; };

vec4 interpolated(Cell cell, uint quad) {
  vec4 sum = vec4(0.0);
  for (uint vertex = 0u; vertex < VERTICES; vertex++) {
    bvec4 sides = sides_of(vertex);
    uint element = element_of(entry_of(cell, sides), quad);
    sum += product_of(weights_of(cell, sides)) * features_at(from_quad(table[element / 4u]), element);
  }
  return sum;
}

void main() {
  uint i = linear_invocation();
  if (i >= rows * ROW_QUADS) return;
  uint row = i % rows;
  uint quad = i / rows;
  vec4 position = positions[row];
  vec4 v = vec4(0.0);
  if (any(is_nan(position))) {
    v = keep_columns(vec4(uintBitsToFloat(0x7fc00000u)), quad * 4u, LEVELS * FEATURES);
  } else {
    for (uint first = 0u; first < 4u && level_of(quad, first) < LEVELS; first += FEATURES_PER_QUAD) {
      vec4 features = interpolated(cell_of(position, level_of(quad, first)), quad);
      v += first == 0u ? features : first == 1u ? features.wxyz : first == 2u ? features.zwxy : features.yzwx;
    }
  }
  store(row * ROW_QUADS + quad, v);
}
