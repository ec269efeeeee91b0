#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
// One workgroup: computes the norm of all unscaled gradients, and the factor that reduces it to the limit, if there is
// one. A norm of finite gradients that is infinite, or so large that its factor is subnormal, is an overflow, too.
#include "loss/row_mean.glsl"
#include "step/norm.glsl"
#include "step/step_state.glsl"

layout(push_constant) uniform Push {
  uint slices;
  float limit;  // 0: none
};
layout(std430, binding = 0) buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer NormsOfSlices { float norms_of_slices[]; };

void main() {
  vec3 total = vec3(0.0);
  for (uint i = gl_LocalInvocationID.x; i < slices; i += gl_WorkGroupSize.x) total += squares_of(norms_of_slices[i]);
  vec2 small_and_medium = sum_over(gl_WorkGroupSize.x, total.xy);
  float large = sum_over(gl_WorkGroupSize.x, vec2(total.z, 0.0)).x;
  if (gl_LocalInvocationID.x != 0u) return;
  float norm = norm_of(vec3(small_and_medium, large)) / state.loss_scale.x;
  state.gradient_norm = norm;
  float most = limit * 4.2535296e37;  // 2^125; infinite if there is a normal factor for any norm
  if (limit > 0.0 && (floatBitsToUint(norm) >= 0x7f800000u || norm > most)) state.overflow |= NOT_FINITE;
  state.clip = limit > 0.0 && norm > limit ? limit / norm : 1.0;
}
