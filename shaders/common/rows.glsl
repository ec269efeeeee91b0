// Kernels that reduce the rows of a tensor: each row is shared by LANES adjacent invocations of a workgroup.
// engine/ops/rows.h distributes the rows. Every invocation of a workgroup reduces, also those past the last row.
#ifndef HALFSTEP_ROWS
#define HALFSTEP_ROWS

#include "common/indexing.glsl"
#include "common/long_sum.glsl"

layout(constant_id = 1) const uint LANES = 1u;  // a power of two; 1 on software drivers

shared vec2 exchanged_lanes[256];

uint lane() { return gl_LocalInvocationID.x % LANES; }
// The row of this invocation; `rows` or more past the last.
uint own_row() { return linear_invocation() / LANES; }

// The sum over the lanes of a row, returned to each.
vec2 sum_over_lanes(vec2 v) {
  uint i = gl_LocalInvocationID.x;
  for (uint step = LANES / 2u; step > 0u; step /= 2u) {
    barrier();
    exchanged_lanes[i] = v;
    barrier();
    v += exchanged_lanes[i ^ step];
  }
  return v;
}

float max_over_lanes(float v) {
  uint i = gl_LocalInvocationID.x;
  for (uint step = LANES / 2u; step > 0u; step /= 2u) {
    barrier();
    exchanged_lanes[i].x = v;
    barrier();
    v = max(v, exchanged_lanes[i ^ step].x);
  }
  return v;
}

float sum_of_elements(vec4 v) { return dot(v, vec4(1.0)); }

#endif
