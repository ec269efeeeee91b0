#version 450
#extension GL_GOOGLE_include_directive : require
// What channel_norm_sums.comp computes.
#include "norm/channel_lanes.glsl"

layout(std430, binding = 2) readonly buffer Statistics { float statistics[]; };
layout(std430, binding = 3) writeonly buffer Sums { float sums[]; };

void main() {
  Slice s;
  if (!lanes_slice(s)) return;
  float mean = statistics[element_at(plane_of(s))];
  vec4 totals = vec4(0.0);  // of every fourth row
  vec4 alongs = vec4(0.0);
  int left = int(rows_in(s));
  uint at = slice_begin(s);
  do {
    [[unroll]] for (int e = 0; e < 4; e++) {
      bool is_there = e < left;
      uint row = is_there ? at + uint(e) * QUADS : at;
      float v = lane_of(x, row) - mean;
      float gradient = lane_of(dy, row);
      gradient = is_there ? gradient : 0.0;
      totals[e] += gradient;
      alongs[e] += gradient * v;
    }
    at += 4u * QUADS;
    left -= 4;
  } while (left > 0);
  uint plane = partial_plane_of(s);
  float inverse = statistics[element_at(plane_of(s) + QUADS)];
  sums[element_at(plane)] = dot(totals, vec4(1.0));
  sums[element_at(plane + QUADS)] = dot(alongs, vec4(1.0)) * inverse;
}
