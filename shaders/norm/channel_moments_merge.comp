#version 450
#extension GL_GOOGLE_include_directive : require
#include "norm/channel_norm.glsl"

// Merges the moments of the parts of a slice.
layout(constant_id = 2) const uint PART_LENGTH = 1u;
layout(constant_id = 3) const uint PARTS = 1u;  // per set
layout(std430, binding = 0) readonly buffer Parts { vec4 parts[]; };
layout(std430, binding = 1) writeonly buffer Moments { vec4 moments[]; };

uint part_plane(Slice s, uint part) { return (s.set * PARTS + part) * 2u * QUADS + s.channel; }
float part_rows(uint part) { return float(min(PART_LENGTH, rows - part * PART_LENGTH)); }

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Slice s = slice_of(invocation);
  uint begin = s.index * (length / PART_LENGTH);
  uint end = min(begin + length / PART_LENGTH, PARTS);
  vec4 first = parts[part_plane(s, begin)];
  vec4 total = vec4(0.0);
  for (uint part = begin; part < end; part++) total += part_rows(part) * (parts[part_plane(s, part)] - first);
  vec4 mean = first + total / float(rows_in(s));
  vec4 squares = vec4(0.0);
  for (uint part = begin; part < end; part++) {
    uint plane = part_plane(s, part);
    vec4 difference = parts[plane] - mean;
    squares += parts[plane + QUADS] + part_rows(part) * difference * difference;
  }
  uint plane = partial_plane_of(s);
  moments[plane] = mean;
  moments[plane + QUADS] = squares;
}
