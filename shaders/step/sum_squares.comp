#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
// The norms of slices of the gradients, unscaled, from those of blocks that are not left out: invocation i takes every
// slices-th block from the i-th.
#include "common/indexing.glsl"
#include "common/long_sum.glsl"
#define SCALES_CONSTANT 1
#define SCALES_BINDING 2
#include "step/block_scales.glsl"
#include "step/norm.glsl"

layout(push_constant) uniform Push {
  uint block_count;
  uint slices;
};
layout(std430, binding = 0) readonly buffer Norms { float norms[]; };
layout(std430, binding = 1) writeonly buffer NormsOfSlices { float norms_of_slices[]; };

void main() {
  uint slice = linear_invocation();
  if (slice >= slices) return;
  LongSum total = EMPTY_SUM;
  for (uint i = slice; i < block_count; i += slices) {
    if (is_skipped(i * BLOCK_QUADS)) continue;
    add_term(total, vec4(squares_of(norms[i] * gradient_unscale(i * BLOCK_QUADS)), 0.0));
  }
  norms_of_slices[slice] = norm_of(value_of(total).xyz);
}
