#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32
// What max_pool2d.comp computes.
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 2
#define BEFORE_PUSH QuadAt x;
#include "pool/pool_lanes.glsl"

void main() {
  result_lane = int(gl_SubgroupInvocationID);
  Place at = place_of_group();
  [[unroll]] for (int i = 0; i < WINDOWS; i++) {
    ivec2 window = at.pixel + ivec2(0, i);
    int largest = 0x80000000;
    // Pixels past the border are the window's outermost ones again.
    [[unroll]] for (int row = 0; row < KERNEL_HEIGHT; row++) {
      [[unroll]] for (int column = 0; column < KERNEL_WIDTH; column++) {
        ivec2 pixel = clamp(window * stride - padding + ivec2(row, column), ivec2(0), input_size - 1);
        largest = max(largest, order_in_window(vec4(lane_of(x, at, pixel, input_size))).x);
      }
    }
    store(part_of(at, window, output_size), number_at(ivec4(largest)));
  }
}
