#version 440
#extension GL_GOOGLE_include_directive : require
// One workgroup: computes the norm of all unscaled gradients, and the factor that reduces it to the limit, if there is
// one. An infinite sum of squares of finite gradients is an overflow, too: there is no factor for it.
#include "loss/row_mean.glsl"
#include "step/step_state.glsl"

layout(push_constant) uniform Push {
  uint sums;
  float limit;  // 0: none
};
layout(std430, binding = 0) buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Sums { float squares[]; };

void main() {
  float total = 0.0;
  for (uint i = gl_LocalInvocationID.x; i < sums; i += gl_WorkGroupSize.x) total += squares[i];
  float square = sum_over(gl_WorkGroupSize.x, vec2(total, 0.0)).x;
  if (gl_LocalInvocationID.x != 0u) return;
  float norm = sqrt(square) / state.loss_scale.x;
  state.gradient_norm = norm;
  if (limit > 0.0 && floatBitsToUint(square) >= 0x7f800000u) state.overflow |= NOT_FINITE;
  state.clip = limit > 0.0 && norm > limit ? limit / norm : 1.0;
}
