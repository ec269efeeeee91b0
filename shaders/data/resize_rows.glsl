// The second pass of resizing. The including shader declares what the first one left: `buffer Columns { vec4 columns[];
// }`.
#ifndef HALFSTEP_RESIZE_ROWS
#define HALFSTEP_RESIZE_ROWS

#include "data/resize.glsl"

// Four channels of pixel {y, x} of the image made {height, width} large, as 0 to 255: the quad `quad` of `quads`.
vec4 resized_pixel(Source source, uint y, uint x, uint height, uint width, uint quad, uint quads) {
  Taps rows = taps(y, height, source.height);
  vec4 sum = vec4(0.0);
  float total = 0.0;
  for (int row = rows.first; row <= rows.last; row++) {
    float w = weight(rows, row);
    sum += w * columns[source.first_quad + (uint(row) * width + x) * quads + quad];
    total += w;
  }
  return sum / total;
}

#endif
