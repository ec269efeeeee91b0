#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// The norm of each block of gradients, as they are stored. Blocks are those of gradient_scales.glsl, so
// that the norm does not depend on which rank has which of them.
#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "step/gradient_scales.glsl"
#include "step/norm.glsl"

layout(push_constant) uniform Push {
  uint first_block;  // of the bound range
  uint count;
};
layout(std430, binding = 0) readonly buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 1) writeonly buffer Norms { float norms[]; };

void main() {
  uint block = linear_invocation();
  if (block >= count) return;
  Squares total = NO_SQUARES;
  uint i = 0u;
  do {
    add_squares(total, from_quad(gradients[block * BLOCK_QUADS + i]));
    i++;
  } while (i < BLOCK_QUADS);
  norms[first_block + block] = norm_of(over_quad(total));
}
