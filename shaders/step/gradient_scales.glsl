// Must match engine/state/gradient_scales.h.
#ifndef HALFSTEP_GRADIENT_SCALES
#define HALFSTEP_GRADIENT_SCALES

const uint BLOCK_QUADS = 32u;

struct Block {
  float unscale;  // undoes the scale of the tensor
  uint skipped;  // whether the tensor skips the update of this step
};

#endif
