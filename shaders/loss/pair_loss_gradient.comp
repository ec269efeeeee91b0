#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! LOSS = mse_loss l1_loss huber_loss binary_cross_entropy
//! STORAGE = storages
#include "loss/pair_loss.glsl"

// Whether it is the gradient of b; otherwise of a.
layout(constant_id = 1) const bool OF_B = false;

layout(std430, binding = 2) readonly buffer Cotangent { vec4 cotangent[]; };
layout(std430, binding = 3) writeonly buffer Gradient { QUAD gradient[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 left = from_quad(a[i]);
  vec4 right = from_quad(b[i]);
  vec4 slope = OF_B ? slope_b(left, right) : slope_a(left, right);
  gradient[i] = to_quad(real_columns(slope, i) * (factor * cotangent[0].x), i);
}
