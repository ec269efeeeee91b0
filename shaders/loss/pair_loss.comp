#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! LOSS = mse_loss l1_loss huber_loss binary_cross_entropy
//! STORAGE = storages
#include "common/long_sum.glsl"
#include "loss/pair_loss.glsl"

// Partial sums: invocation i processes every slices-th quad, starting at the i-th.
layout(std430, binding = 2) writeonly buffer Partial { vec4 partial_sums[]; };

void main() {
  uint slice = linear_invocation();
  if (slice >= slices) return;
  LongSum total = EMPTY_SUM;
  for (uint i = slice; i < quads; i += slices) {
    add_term(total, real_columns(loss(from_quad(a[i]), from_quad(b[i])), i));
  }
  partial_sums[slice] = value_of(total);
}
