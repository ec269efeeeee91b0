#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f16 packed
// Finds the largest magnitude of each block of gradients, and values that are not finite: replaces check.comp for
// gradients whose tensors have their own scales.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "step/gradient_scales.glsl"
#include "step/step_state.glsl"

layout(push_constant) uniform Push {
  uint first_block;  // of the bound range
  uint count;
};
layout(std430, binding = 0) buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 2) writeonly buffer Largest { uint largest[]; };  // as the bits of f32

void main() {
  uint block = linear_invocation();
  if (block >= count) return;
  uvec4 most = uvec4(0u);
  uint i = 0u;
  do {
    most = max(most, floatBitsToUint(from_quad(gradients[block * BLOCK_QUADS + i])) & 0x7FFFFFFFu);
    i++;
  } while (i < BLOCK_QUADS);
  uint magnitude = max(max(most.x, most.y), max(most.z, most.w));
  if (magnitude >= 0x7F800000u) atomicOr(state.overflow, NOT_FINITE);
  largest[first_block + block] = magnitude;
}
