// How the gradients of this step are stored, block by block of their store, where they are times scales of their own
// (Precision::gradient_scales). The including shader has said which constant switches that on, SCALES_CONSTANT, and
// which binding has the blocks, SCALES_BINDING.
#ifndef HALFSTEP_BLOCK_SCALES
#define HALFSTEP_BLOCK_SCALES

#include "step/gradient_scales.glsl"

layout(constant_id = SCALES_CONSTANT) const bool TENSOR_SCALES = false;
layout(std430, binding = SCALES_BINDING) readonly buffer Blocks { Block blocks[]; };

// `quad` is counted over all parameters.
bool is_left_out(uint quad) { return TENSOR_SCALES && blocks[quad / BLOCK_QUADS].left_out != 0u; }
float gradient_unscale(uint quad) { return TENSOR_SCALES ? blocks[quad / BLOCK_QUADS].unscale : 1.0; }

#endif
