#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Looks for a gradient that is not finite. Only reads them: unscaling f16 gradients in memory would bring back the
// underflow that the loss scale is there to avoid.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "step/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint quads; };
layout(std430, binding = 0) buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Gradients { QUAD gradients[]; };

const uint QUADS_EACH = 8u;

void main() {
  // Adjacent invocations read adjacent quads.
  uint first = linear_group() * gl_WorkGroupSize.x * QUADS_EACH + gl_LocalInvocationID.x;
  uint largest = 0u;
  for (uint j = 0u; j < QUADS_EACH; j++) {
    uint i = first + j * gl_WorkGroupSize.x;
    if (i >= quads) break;
    uvec4 magnitude = floatBitsToUint(from_quad(gradients[i])) & 0x7FFFFFFFu;
    largest = max(largest, max(max(magnitude.x, magnitude.y), max(magnitude.z, magnitude.w)));
  }
  if (largest >= 0x7F800000u) atomicOr(state.overflow, NOT_FINITE);
}
