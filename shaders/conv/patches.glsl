// Which pixel of an image a tap reads, for convolutions and their gradients. Uses the push constants of gemm.glsl.
#ifndef HALFSTEP_PATCHES
#define HALFSTEP_PATCHES

// {row, column} of a tap.
ivec2 tap_place(int tap) {
  int row = tap / kernel_width;
  return ivec2(row, tap - row * kernel_width);
}

// The pixel for `place`, which is a position times stride plus a tap's shift; `inside` tells whether it exists.
ivec2 pixel_at(ivec2 place, out bool inside) {
  ivec2 pixel = place;
  inside = true;
  if (DIVIDED) {
    // Exact: image extents are far below 2^20.
    pixel = ivec2(floor((vec2(place) + 0.5) / vec2(stride)));
    inside = all(equal(pixel * stride, place));
  }
  inside = inside && all(lessThan(uvec2(pixel), uvec2(image)));  // negative numbers become large
  return pixel;
}

#endif
