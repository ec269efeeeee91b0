#version 440
#extension GL_GOOGLE_include_directive : require
// Adds up the squares of blocks of gradients, unscaled, of those that are not left out: invocation i takes every
// slices-th block from the i-th.
#include "common/indexing.glsl"
#include "common/long_sum.glsl"
#define SCALES_CONSTANT 1
#define SCALES_BINDING 2
#include "step/block_scales.glsl"

layout(push_constant) uniform Push {
  uint block_count;
  uint slices;
};
layout(std430, binding = 0) readonly buffer Squares { float squares[]; };
layout(std430, binding = 1) writeonly buffer Sums { float sums[]; };

void main() {
  uint slice = linear_invocation();
  if (slice >= slices) return;
  LongSum total = EMPTY_SUM;
  for (uint i = slice; i < block_count; i += slices) {
    if (is_skipped(i * BLOCK_QUADS)) continue;
    float unscale = gradient_unscale(i * BLOCK_QUADS);
    add_term(total, vec4(squares[i] * unscale * unscale, 0.0, 0.0, 0.0));
  }
  sums[slice] = value_of(total).x;
}
