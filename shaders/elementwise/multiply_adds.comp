#version 440
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Only multiply-adds in registers: measures the device's f32 arithmetic, as a reference for kernels. Twelve chains per
// invocation hide the latency of one, and fit in the registers of CPUs.
#include "common/indexing.glsl"

const int CHAINS = 3;  // of four numbers
const int UNROLLED = 16;

layout(push_constant) uniform Push {
  uint quads;
  int rounds;  // at least one
  float factor;
  float term;
};
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) writeonly buffer Y { vec4 y[]; };

void main() {
  uint at = linear_invocation();
  vec4 start = at < quads ? x[at] : vec4(0.0);
  vec4 sums[CHAINS];
  [[unroll]] for (int i = 0; i < CHAINS; i++) sums[i] = start + float(i);
  int left = rounds;
  do {
    [[unroll]] for (int step = 0; step < UNROLLED; step++) {
      [[unroll]] for (int i = 0; i < CHAINS; i++) sums[i] = fma(sums[i], vec4(factor), vec4(term));
    }
    left--;
  } while (left > 0);
  if (at < quads) y[at] = sums[0] + sums[1] + sums[2];
}
