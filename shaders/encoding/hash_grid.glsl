// The cells of a multiresolution grid, and where their vertices' features are in its table.
#ifndef HALFSTEP_HASH_GRID
#define HALFSTEP_HASH_GRID

#include "common/math.glsl"

const uint MOST_LEVELS = 24u;
layout(constant_id = 1) const uint DIMENSIONS = 2u;
layout(constant_id = 2) const uint LEVELS = 1u;
layout(constant_id = 3) const uint FEATURES = 2u;
layout(constant_id = 4) const uint LOG2_ENTRIES = 4u;  // of a level whose vertices are hashed
layout(constant_id = 5) const uint DENSE_LEVELS = 0u;  // the first levels: each vertex has an entry of its own
const uint ROW_QUADS = (LEVELS * FEATURES + 3u) / 4u;  // of the result
const uint VERTICES = 1u << DIMENSIONS;                // of a cell
const uint FEATURES_PER_QUAD = FEATURES < 4u ? FEATURES : 4u;

layout(push_constant) uniform Push {
  uint rows;
  uint resolutions[MOST_LEVELS];  // cells along each axis
};

// Axes that a position does not have are zeros in memory: corner 0, fraction 0.
struct Cell {
  uvec4 corner;
  vec4 fraction;
  uint first_entry;
  uint vertices;  // along an axis
  bool dense;
};

uint dense_entries(uint level) {
  uint side = resolutions[level] + 1u;
  uint square = side * side;
  return (DIMENSIONS > 1u ? square : side) * (DIMENSIONS > 3u ? square : DIMENSIONS > 2u ? side : 1u);
}

uint first_entry(uint level) {
  uint dense = min(level, DENSE_LEVELS);
  uint first = (level - dense) << LOG2_ENTRIES;
  for (uint other = 0u; other < dense; other++) first += dense_entries(other);
  return first;
}

// The first one where a coordinate is NaN, of which Vulkan leaves open what clamping and conversion make.
Cell cell_of(vec4 position, uint level) {
  float cells = float(resolutions[level]);
  vec4 at = mix(clamp(position, 0.0, 1.0), vec4(0.0), is_nan(position)) * cells;
  vec4 corner = min(floor(at), cells - 1.0);
  return Cell(uvec4(corner), at - corner, first_entry(level), resolutions[level] + 1u, level < DENSE_LEVELS);
}

// Which sides of a cell a vertex is on.
bvec4 sides_of(uint vertex) { return notEqual((uvec4(vertex) >> uvec4(0u, 1u, 2u, 3u)) & 1u, uvec4(0u)); }

vec4 weights_of(Cell cell, bvec4 sides) { return mix(1.0 - cell.fraction, cell.fraction, sides); }

uint entry_of(Cell cell, bvec4 sides) {
  uvec4 at = cell.corner + uvec4(sides);
  if (cell.dense) {
    return cell.first_entry + at.x + cell.vertices * (at.y + cell.vertices * (at.z + cell.vertices * at.w));
  }
  uvec4 hashed = at * uvec4(1u, 2654435761u, 805459861u, 3674653429u);
  return cell.first_entry + ((hashed.x ^ hashed.y ^ hashed.z ^ hashed.w) & ((1u << LOG2_ENTRIES) - 1u));
}

float product_of(vec4 v) { return v.x * v.y * (v.z * v.w); }

// The level whose features begin at element `first` of a row's quad.
uint level_of(uint quad, uint first) { return (quad * 4u + first) / FEATURES; }

// The element of the table where an entry's features of that quad begin.
uint element_of(uint entry, uint quad) { return entry * FEATURES + (quad * 4u) % FEATURES; }

// Those of a quad of the table that begin at `element`, as the elements from 0 on.
vec4 features_at(vec4 quad, uint element) {
  if (FEATURES >= 4u) return quad;
  if (FEATURES == 2u) return vec4((element & 2u) == 0u ? quad.xy : quad.zw, 0.0, 0.0);
  return vec4(quad[element & 3u], 0.0, 0.0, 0.0);
}

// The features from element `first` of a quad on, as the elements from 0 on.
vec4 features_from(vec4 quad, uint first) {
  return FEATURES >= 4u ? quad : FEATURES == 2u ? vec4(first == 0u ? quad.xy : quad.zw, 0.0, 0.0)
                                                : vec4(quad[first], 0.0, 0.0, 0.0);
}


#endif
