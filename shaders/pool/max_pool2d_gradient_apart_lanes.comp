#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32
// What max_pool2d_gradient_apart.comp computes, of windows without padding that fill the image.
#define RESULT_BINDING 3
#define FIRST_ARGUMENT 4
#define BEFORE_PUSH \
  QuadAt x;         \
  QuadAt y;         \
  QuadAt dy;
#include "pool/pool_lanes.glsl"

void main() {
  result_lane = int(gl_SubgroupInvocationID);
  Place at = place_of_group();
  [[unroll]] for (int i = 0; i < WINDOWS; i++) {
    ivec2 window = at.pixel + ivec2(0, i);
    int largest = order_in_window(vec4(lane_of(y, at, window, output_size))).x;
    float gradient = lane_of(dy, at, window, output_size);
    [[unroll]] for (int row = 0; row < STRIDE_HEIGHT; row++) {
      [[unroll]] for (int column = 0; column < STRIDE_WIDTH; column++) {
        ivec2 pixel = window * stride + ivec2(row, column);
        bool chosen = false;
        if (row < KERNEL_HEIGHT && column < KERNEL_WIDTH) {
          chosen = order_in_window(vec4(lane_of(x, at, pixel, input_size))).x == largest;
        }
        store(part_of(at, pixel, input_size), vec4(chosen ? gradient : 0.0));
        gradient = chosen ? 0.0 : gradient;
      }
    }
  }
}
