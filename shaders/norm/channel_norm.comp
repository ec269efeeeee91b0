#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/channel_norm.glsl"
#define RESULT_BINDING 4
#define FIRST_ARGUMENT 5
#include "common/expression.glsl"

// y = (x - mean) * inverse std * weight + bias
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 2) readonly buffer Weight { QUAD weight[]; };
layout(std430, binding = 3) readonly buffer Bias { QUAD bias[]; };

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Slice s = slice_of(invocation);
  uint end = slice_end(s);
  uint plane = plane_of(s);
  vec4 mean = statistics[plane];
  vec4 factor = statistics[plane + QUADS] * from_quad(weight[s.channel]);
  vec4 offset = from_quad(bias[s.channel]);
  for (uint i = slice_begin(s); i < end; i += QUADS) store(i, (from_quad(x[i]) - mean) * factor + offset);
}
