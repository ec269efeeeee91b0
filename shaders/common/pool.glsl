// Windows over images {n, h, w, c}, c counted in quads: what max and average pooling share. Pairs are {height, width}.
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(push_constant) uniform Push {
  uint quads;  // of the tensor that is written
  uint channel_quads;
  ivec2 input_size;
  ivec2 output_size;
  ivec2 kernel;
  ivec2 stride;
  ivec2 padding;
};

// A quad of an image.
struct Place {
  int image;
  ivec2 pixel;
  uint channel;
};

Place place_of(uint quad, ivec2 size) {
  uint pixel = quad / channel_quads;
  uint row = pixel / uint(size.y);
  return Place(int(row / uint(size.x)), ivec2(row % uint(size.x), pixel % uint(size.y)), quad % channel_quads);
}

uint quad_at(Place at, ivec2 pixel, ivec2 size) {
  return uint((at.image * size.x + pixel.x) * size.y + pixel.y) * channel_quads + at.channel;
}

// The part of a window inside the image: from its first pixel, up to but not including its last.
ivec2 window_begin(ivec2 window) { return max(window * stride - padding, ivec2(0)); }
ivec2 window_end(ivec2 window) { return min(window * stride - padding + kernel, input_size); }

// The windows that cover a pixel: from the first, up to but not including the last.
ivec2 windows_begin(ivec2 pixel) { return max((pixel + padding - kernel + stride) / stride, ivec2(0)); }
ivec2 windows_end(ivec2 pixel) { return min((pixel + padding) / stride + 1, output_size); }
