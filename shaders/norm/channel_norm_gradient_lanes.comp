#version 450
#extension GL_GOOGLE_include_directive : require
// What channel_norm_gradient.comp computes.
#include "norm/channel_lanes.glsl"

layout(constant_id = 2) const bool SUMS = true;
layout(std430, binding = 2) readonly buffer Statistics { float statistics[]; };
layout(std430, binding = 3) readonly buffer Weight { float weight[]; };
layout(std430, binding = 4) readonly buffer Means { float means[]; };
layout(std430, binding = 5) writeonly buffer DX { float dx[]; };

void main() {
  Slice s;
  if (!lanes_slice(s)) return;
  uint plane = element_at(plane_of(s));
  float mean = statistics[plane];
  float inverse = statistics[plane + 4u * QUADS];
  float factor = inverse * weight[element_at(s.channel)];
  float share = SUMS ? factor / float(rows) : inverse;
  float offset = share * means[plane];
  float along = share * inverse * means[plane + 4u * QUADS];
  int left = int(rows_in(s));
  uint at = slice_begin(s);
  do {
    float values[4];
    [[unroll]] for (int e = 0; e < 4; e++) {
      uint row = e < left ? at + uint(e) * QUADS : at;
      values[e] = factor * lane_of(dy, row) - offset - along * (lane_of(x, row) - mean);
    }
    [[unroll]] for (int e = 0; e < 4; e++) {
      if (e < left) dx[element_at(at + uint(e) * QUADS)] = values[e];
    }
    at += 4u * QUADS;
    left -= 4;
  } while (left > 0);
}
