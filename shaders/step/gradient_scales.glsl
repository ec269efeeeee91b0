// The twin of engine/step/gradient_scales.h.
#ifndef HALFSTEP_GRADIENT_SCALES
#define HALFSTEP_GRADIENT_SCALES

const uint BLOCK_QUADS = 32u;

struct Block {
  float unscale;  // what undoes the scale that its tensor is stored times
  uint left_out;  // whether the tensor is not updated in this step
};

#endif
