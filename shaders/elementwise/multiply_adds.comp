#version 440
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
// Only multiply-adds in registers: measures the device's f32 arithmetic, as a reference for kernels. Twelve numbers per
// invocation hide the latency of one operation, and fit in the registers of CPUs. Each step adds to each its neighbour:
// were they independent, LLVM would take a few of them through all steps before the others, and wait for each result.
#include "common/indexing.glsl"

const int UNROLLED = 64;

layout(push_constant) uniform Push {
  uint quads;
  int rounds;  // at least one
  float factor;
};
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) writeonly buffer Y { vec4 y[]; };

void main() {
  uint at = linear_invocation();
  vec4 start = at < quads ? x[at] : vec4(0.0);
  vec4 a = start + vec4(0.0, 1.0, 2.0, 3.0);
  vec4 b = a + 4.0;
  vec4 c = a + 8.0;
  int left = rounds;
  do {
    [[unroll]] for (int step = 0; step < UNROLLED; step++) {
      float first = a.x;
      a = fma(a, vec4(factor), vec4(a.yzw, b.x));
      b = fma(b, vec4(factor), vec4(b.yzw, c.x));
      c = fma(c, vec4(factor), vec4(c.yzw, first));
    }
    left--;
  } while (left > 0);
  if (at < quads) y[at] = a + b + c;
}
