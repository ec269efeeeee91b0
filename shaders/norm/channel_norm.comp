#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/channel_norm.glsl"
#define RESULT_BINDING 4
#define FIRST_ARGUMENT 5
#include "common/expression.glsl"
#include "common/mixed_operands.glsl"

// y = (x - mean) * inverse std * weight + bias
READ_STORED(0, X, x)
layout(std430, binding = 1) readonly buffer Statistics { vec4 statistics[]; };
READ_STORED(2, Weight, weight)
READ_STORED(3, Bias, bias)

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Slice s = slice_of(invocation);
  uint end = slice_end(s);
  uint plane = plane_of(s);
  vec4 mean = statistics[plane];
  vec4 factor = statistics[plane + QUADS] * weight_at(s.channel);
  vec4 offset = bias_at(s.channel);
  for (uint i = slice_begin(s); i < end; i += QUADS) store(i, (x_at(i) - mean) * factor + offset);
}
