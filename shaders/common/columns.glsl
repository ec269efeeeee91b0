// Kernels that reduce over rows: a workgroup has TOGETHER adjacent quads of results, each shared by LANES invocations.
// On software drivers both are 1, and an invocation does all of a result. engine/ops/columns.h distributes the results.
// Every invocation of a workgroup reduces, also those past the last result. A kernel may define LANES_ARE_ADJACENT:
// whether adjacent invocations share a result, or else have adjacent results.
#ifndef HALFSTEP_COLUMNS
#define HALFSTEP_COLUMNS

#include "common/indexing.glsl"

layout(constant_id = 4) const uint LANES = 1u;     // a power of two
layout(constant_id = 5) const uint TOGETHER = 1u;  // likewise
// The most that a lane adds, where that is few: a loop of so many rounds, whose reads need not wait for each other.
// 0: any number.
layout(constant_id = 6) const uint TERMS = 0u;
const bool SHARES = LANES * TOGETHER > 1u;

#ifndef LANES_ARE_ADJACENT
#define LANES_ARE_ADJACENT false
#endif

shared vec4 exchanged_quads[SHARES ? LANES * TOGETHER : 1u];

// What the invocation works at: TOGETHER results, of which it has one, as one of its lanes.
uint work_unit() { return SHARES ? linear_group() : linear_invocation(); }
uint in_unit() {
  uint i = SHARES ? gl_LocalInvocationID.x : 0u;
  return LANES_ARE_ADJACENT ? i / LANES : i % TOGETHER;
}
uint lane() {
  uint i = SHARES ? gl_LocalInvocationID.x : 0u;
  return LANES_ARE_ADJACENT ? i % LANES : i / TOGETHER;
}

// The value of the lane whose number differs in the bits of `mask`. All lanes call this.
vec4 exchanged_across(vec4 v, uint mask) {
  uint i = gl_LocalInvocationID.x;
  barrier();
  exchanged_quads[i] = v;
  barrier();
  return exchanged_quads[i ^ (LANES_ARE_ADJACENT ? mask : mask * TOGETHER)];
}

// The sum over the lanes of a result, returned to each.
vec4 sum_over_lanes(vec4 v) {
  for (uint mask = LANES / 2u; mask > 0u; mask /= 2u) v += exchanged_across(v, mask);
  return v;
}

#endif
