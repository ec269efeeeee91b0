#include "pool/pool.glsl"

// The weight of a pixel in the mean of a window.
float weight_in(ivec2 window) {
  ivec2 size = COUNT_PADDING ? kernel : window_end(window) - window_begin(window);
  return 1.0 / float(size.x * size.y);
}
