#version 440
#extension GL_GOOGLE_include_directive : require
// What attention.glsl searches the ends of segments in: for each batch the numbers of its rows' segments, then a quad
// whose first word is 1 where they decrease somewhere, so that no search finds them all. A workgroup for each batch.
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
  uint batches;
  uint rows;
};
layout(std430, binding = 0) readonly buffer Segments { uint segments[]; };
layout(std430, binding = 1) writeonly buffer Searched { uint searched[]; };

shared uint decreases;

void main() {
  uint batch = linear_group();
  if (batch >= batches) return;
  if (gl_LocalInvocationID.x == 0u) decreases = 0u;
  barrier();
  uint padded = (rows + 3u) / 4u * 4u;
  uint first = batch * padded;
  for (uint row = gl_LocalInvocationID.x; row < rows; row += gl_WorkGroupSize.x) {
    uint segment = segments[first + row];
    searched[first + batch * 4u + row] = segment;
    if (segment < segments[first + max(row, 1u) - 1u]) atomicOr(decreases, 1u);
  }
  barrier();
  if (gl_LocalInvocationID.x == 0u) searched[first + batch * 4u + padded] = decreases;
}
