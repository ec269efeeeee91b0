#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"

// Batch norm with the running statistics as y = x * factor + offset.
layout(push_constant) uniform Push {
  uint quads;
  float epsilon;
};
layout(std430, binding = 0) readonly buffer Weight { QUAD weight[]; };
layout(std430, binding = 1) readonly buffer Bias { QUAD bias[]; };
layout(std430, binding = 2) readonly buffer RunningMean { vec4 running_mean[]; };
layout(std430, binding = 3) readonly buffer RunningVariance { vec4 running_variance[]; };
layout(std430, binding = 4) writeonly buffer Factor { QUAD factor[]; };
layout(std430, binding = 5) writeonly buffer Offset { QUAD offset[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 scale = from_quad(weight[i]) / sqrt(running_variance[i] + epsilon);
  factor[i] = to_quad(scale, i);
  offset[i] = to_quad(from_quad(bias[i]) - running_mean[i] * scale, i);
}
