// Merges the moments of the parts of a slice.
#include "norm/slice_columns.glsl"
#include "common/moments.glsl"

layout(constant_id = 2) const uint PART_LENGTH = 1u;
layout(constant_id = 3) const uint PARTS = 1u;  // per set
layout(std430, binding = 0) readonly buffer Parts { vec4 parts[]; };

uint part_plane(Slice s, uint part) { return (s.set * PARTS + part) * 2u * QUADS + s.channel; }
float part_rows(uint part) { return float(min(PART_LENGTH, rows - part * PART_LENGTH)); }

// The moments of every LANES-th of a slice's parts.
Moments moments_of_lane(Slice s) {
  uint begin = s.index * (length / PART_LENGTH);
  uint end = min(begin + length / PART_LENGTH, PARTS);
  uint terms = TERMS > 0u ? TERMS : end - begin;
  vec4 first = parts[part_plane(s, begin)];
  float own_rows = 0.0;
  vec4 total = vec4(0.0);
  for (uint t = 0u; t < terms; t++) {
    uint part = begin + lane() + t * LANES;
    float part_is = part < end ? part_rows(part) : 0.0;
    own_rows += part_is;
    total += part_is * (parts[part_plane(s, min(part, end - 1u))] - first);
  }
  vec4 mean = first + total / max(own_rows, 1.0);
  vec4 squares = vec4(0.0);
  for (uint t = 0u; t < terms; t++) {
    uint part = begin + lane() + t * LANES;
    uint plane = part_plane(s, min(part, end - 1u));
    vec4 difference = parts[plane] - mean;
    vec4 of_part = parts[plane + QUADS] + part_rows(part) * difference * difference;
    squares += part < end ? of_part : vec4(0.0);
  }
  return Moments(own_rows, mean, squares);
}

Moments merged_over_lanes(Moments moments) {
  for (uint mask = LANES / 2u; mask > 0u; mask /= 2u) {
    Moments other;
    other.rows = exchanged_across(vec4(moments.rows), mask).x;
    other.mean = exchanged_across(moments.mean, mask);
    other.squares = exchanged_across(moments.squares, mask);
    moments = merged(moments, other);
  }
  return moments;
}

Moments merged_parts(OwnSlice own) {
  Moments made = NO_MOMENTS;
  if (own.is_there) made = moments_of_lane(own.slice);
  return merged_over_lanes(made);
}
