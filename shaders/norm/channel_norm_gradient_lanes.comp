#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_KHR_shader_subgroup_quad : require
// What channel_norm_gradient.comp computes.
#include "norm/channel_lanes.glsl"
#include "common/pairs.glsl"

layout(constant_id = 2) const bool SUMS = true;
layout(std430, binding = 2) readonly buffer Statistics { float statistics[]; };
layout(std430, binding = 3) readonly buffer Weight { float weight[]; };
layout(std430, binding = 4) readonly buffer Means { float means[]; };
layout(std430, binding = 5) writeonly buffer DX { float dx[]; };
layout(std430, binding = 5) writeonly buffer DXPairs { uint64_t dx_pairs[]; };

// Stores two adjacent rows, if there are so many.
void store_rows(uint quad, int count, float first, float second, int lane) {
  if (STORES_64_BITS) {
    uvec2 pair = pair_of_columns(floatBitsToUint(first), floatBitsToUint(second), lane);
    int row = lane & 1;
    if (row < count) dx_pairs[(quad + uint(row) * QUADS) * 2u + uint(lane >> 1)] = pack64(pair);
  } else {
    if (0 < count) dx[quad * 4u + uint(lane)] = first;
    if (1 < count) dx[(quad + QUADS) * 4u + uint(lane)] = second;
  }
}

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
  int lane = int(gl_SubgroupInvocationID);
  int left = int(rows_in(s));
  uint at = slice_begin(s);
  do {
    float values[4];
    [[unroll]] for (int e = 0; e < 4; e++) {
      uint row = e < left ? at + uint(e) * QUADS : at;
      values[e] = factor * lane_of(dy, row) - offset - along * (lane_of(x, row) - mean);
    }
    [[unroll]] for (int e = 0; e < 4; e += 2) {
      store_rows(at + uint(e) * QUADS, left - e, values[e], values[e + 1], lane);
    }
    at += 4u * QUADS;
    left -= 4;
  } while (left > 0);
}
