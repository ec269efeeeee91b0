#version 440
#extension GL_GOOGLE_include_directive : require
// The second pass of resizing images of bytes, each of its own size, to samples of one size, bytes again, one after the
// other. An invocation makes a word, four bytes, of one sample; the bytes that fill up a sample's last word are zeros.
#include "common/indexing.glsl"
#include "data/resize.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
  uint samples;
  uint height;
  uint width;
  uint channels;
};
layout(std430, binding = 0) readonly buffer Sources { Source sources[]; };
layout(std430, binding = 1) readonly buffer Columns { vec4 columns[]; };
layout(std430, binding = 2) writeonly buffer Samples { uint result[]; };

#include "data/resize_rows.glsl"

uint resized_byte(Source source, uint byte_of_sample) {
  uint channel = byte_of_sample % channels;
  uint place = byte_of_sample / channels;
  vec4 value = resized_pixel(source, place / width, place % width, height, width, channel / 4u, (channels + 3u) / 4u);
  return uint(value[channel % 4u] + 0.5);
}

void main() {
  uint i = linear_invocation();
  uint sample_bytes = height * width * channels;
  uint sample_words = (sample_bytes + 3u) / 4u;
  if (i >= samples * sample_words) return;
  Source source = sources[i / sample_words];
  if (source.width == 0u) return;
  uint word = 0u;
  for (uint k = 0u; k < 4u; k++) {
    uint byte_of_sample = 4u * (i % sample_words) + k;
    if (byte_of_sample < sample_bytes) word |= resized_byte(source, byte_of_sample) << (8u * k);
  }
  result[i] = word;
}
