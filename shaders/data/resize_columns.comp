#version 440
#extension GL_GOOGLE_include_directive : require
//! IMAGES = batch table
// The first pass of resizing: an invocation makes a quad, four channels about one column in one row of an image. The
// images are a batch of a set, whose samples have one size, or those of a table, each of its own size.
#include "common/indexing.glsl"
#include "data/resize.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
  uint images;
  uint width;     // of the resized images
  uint channels;  // of the images
#if defined(IMAGES_batch)
  uint stored_height;  // of the set's samples
  uint stored_width;
  uint first;  // place of these images in the step's indices, which are bound
#endif
};
#if defined(IMAGES_batch)
layout(std430, binding = 0) readonly buffer Indices { uint indices[]; };
#else
layout(std430, binding = 0) readonly buffer Sources { Source sources[]; };
#endif
layout(std430, binding = 1) readonly buffer Bytes { uint words[]; };
layout(std430, binding = 2) writeonly buffer Columns { vec4 columns[]; };

#include "data/image.glsl"

// The image that quad i is of, if any is.
#if defined(IMAGES_batch)
Source source_of(uint i, uint row_quads) {
  uint image_quads = stored_height * row_quads;
  uint b = i / image_quads;
  if (b >= images) return Source(0u, 0u, stored_width, 0u);
  return Source(indices[first + b] * stored_height * stored_width * channels, stored_height, stored_width,
                b * image_quads);
}
#else
Source source_of(uint i, uint row_quads) {
  uint found = 0u;
  uint end = images;
  while (end - found > 1u) {
    uint middle = (found + end) / 2u;
    if (sources[middle].first_quad <= i) found = middle;
    else end = middle;
  }
  return sources[found];
}
#endif

// The mean of a row's pixels about one of the resized image's columns.
vec4 row_pixel(Image image, uint row, uint x, uvec4 channel) {
  Taps taps = taps(x, width, image.width);
  vec4 sum = vec4(0.0);
  float total = 0.0;
  for (int column = taps.first; column <= taps.last; column++) {
    float w = weight(taps, column);
    sum += w * pixel(image, row, uint(column), channel);
    total += w;
  }
  return sum / total;
}

void main() {
  uint i = linear_invocation();
  uint quads = (channels + 3u) / 4u;
  Source source = source_of(i, width * quads);
  uint place = (i - source.first_quad) / quads;
  uint row = place / width;
  if (row >= source.height) return;
  Image image = Image(source.first_byte, source.height, source.width, channels);
  uint quad = (i - source.first_quad) % quads;
  columns[i] = row_pixel(image, row, place % width, uvec4(4u * quad) + uvec4(0u, 1u, 2u, 3u));
}
