// Common code of max and average pooling: windows over images {n, h, w, c}, with c counted in quads. Pairs are {height,
// width}. The geometry is specialized: on a software driver, dividing by a constant is ten times as fast as by a
// variable.
#include "common/expression.glsl"

layout(constant_id = 1) const uint CHANNEL_QUADS = 1u;
layout(constant_id = 2) const int INPUT_HEIGHT = 1;
layout(constant_id = 3) const int INPUT_WIDTH = 1;
layout(constant_id = 4) const int OUTPUT_HEIGHT = 1;
layout(constant_id = 5) const int OUTPUT_WIDTH = 1;
layout(constant_id = 6) const int KERNEL_HEIGHT = 1;
layout(constant_id = 7) const int KERNEL_WIDTH = 1;
layout(constant_id = 8) const int STRIDE_HEIGHT = 1;
layout(constant_id = 9) const int STRIDE_WIDTH = 1;
layout(constant_id = 10) const int PADDING_HEIGHT = 0;
layout(constant_id = 11) const int PADDING_WIDTH = 0;
// The tensor with one invocation for each of its quads.
layout(constant_id = 12) const int GRID_HEIGHT = 1;
layout(constant_id = 13) const int GRID_WIDTH = 1;
// Average pooling: whether padding counts in the divisor.
layout(constant_id = 14) const bool COUNT_PADDING = true;
// Adaptive pooling: windows divide the input into the output's extents; kernel, stride and padding are then unused.
layout(constant_id = 15) const bool ADAPTIVE = false;

layout(push_constant) uniform Push {
#ifdef BEFORE_PUSH
  BEFORE_PUSH
#endif
  uint invocations;
};

const ivec2 input_size = ivec2(INPUT_HEIGHT, INPUT_WIDTH);
const ivec2 output_size = ivec2(OUTPUT_HEIGHT, OUTPUT_WIDTH);
const ivec2 kernel = ivec2(KERNEL_HEIGHT, KERNEL_WIDTH);
const ivec2 stride = ivec2(STRIDE_HEIGHT, STRIDE_WIDTH);
const ivec2 padding = ivec2(PADDING_HEIGHT, PADDING_WIDTH);

// order_of() of what a window's largest element is chosen from: 0 and -0 are equal.
ivec4 order_in_window(vec4 v) {
  ivec4 order = order_of(v);
  return order + ivec4(equal(order, ivec4(-1)));
}

// A quad of an image.
struct Place {
  int image;
  ivec2 pixel;
  uint channel;
};

Place place_of(uint invocation) {
  uint pixel = invocation / CHANNEL_QUADS;
  uint row = pixel / uint(GRID_WIDTH);
  return Place(int(row / uint(GRID_HEIGHT)), ivec2(row % uint(GRID_HEIGHT), pixel % uint(GRID_WIDTH)),
               invocation % CHANNEL_QUADS);
}

uint quad_at(Place at, ivec2 pixel, ivec2 size) {
  return uint((at.image * size.x + pixel.x) * size.y + pixel.y) * CHANNEL_QUADS + at.channel;
}

// The part of a window inside the image: from begin up to but not including the end.
ivec2 window_begin(ivec2 window) {
  return ADAPTIVE ? window * input_size / output_size : max(window * stride - padding, ivec2(0));
}
ivec2 window_end(ivec2 window) {
  return ADAPTIVE ? ((window + 1) * input_size + output_size - 1) / output_size
                  : min(window * stride - padding + kernel, input_size);
}

// The windows that cover a pixel: from begin up to but not including the end.
ivec2 windows_begin(ivec2 pixel) {
  return ADAPTIVE ? pixel * output_size / input_size : max((pixel + padding - kernel + stride) / stride, ivec2(0));
}
ivec2 windows_end(ivec2 pixel) {
  return ADAPTIVE ? ((pixel + 1) * output_size + input_size - 1) / input_size
                  : min((pixel + padding) / stride + 1, output_size);
}
