#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Sums of the squares of gradients, of those that are not left out: invocation i takes every slices-th quad from the
// i-th.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "common/long_sum.glsl"
#define SCALES_CONSTANT 1
#define SCALES_BINDING 2
#include "step/block_scales.glsl"

layout(push_constant) uniform Push {
  uint quads;
  uint slices;
  uint first_sum;
  uint first_quad;  // of the bound range, counted over all parameters
};
layout(std430, binding = 0) readonly buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 1) writeonly buffer Sums { vec4 sums[]; };

void main() {
  uint slice = linear_invocation();
  if (slice >= slices) return;
  LongSum total = EMPTY_SUM;
  for (uint i = slice; i < quads; i += slices) {
    if (is_skipped(first_quad + i)) continue;
    vec4 gradient = from_quad(gradients[i]) * gradient_unscale(first_quad + i);
    add_term(total, gradient * gradient);
  }
  sums[first_sum + slice] = value_of(total);
}
