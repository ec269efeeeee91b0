// How the gradients of this step are stored, for each block of the gradient buffer, if tensors have their own scales
// (Precision::gradient_scales). The including shader defines SCALES_CONSTANT, the constant that enables this, and
// SCALES_BINDING, the binding of the blocks.
#ifndef HALFSTEP_BLOCK_SCALES
#define HALFSTEP_BLOCK_SCALES

#include "step/gradient_scales.glsl"

layout(constant_id = SCALES_CONSTANT) const bool TENSOR_SCALES = false;
layout(std430, binding = SCALES_BINDING) readonly buffer Blocks { Block blocks[]; };

// `quad` is counted over all parameters.
bool is_skipped(uint quad) { return TENSOR_SCALES && blocks[quad / BLOCK_QUADS].skipped != 0u; }
float gradient_unscale(uint quad) { return TENSOR_SCALES ? blocks[quad / BLOCK_QUADS].unscale : 1.0; }

#endif
