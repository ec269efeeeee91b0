#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
//! FEED = plain augmented
//! SOURCE = bytes columns
// Gathers a batch of bytes, or a part of one: sample[indices[first + b]] becomes row start + b of the input, augmented,
// normalised and cast. Samples of the input's size are read as bytes; others are resized from the columns that
// data/resize_columns.comp left.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
// The input's size and that of the set's samples. As constants, since drivers divide by those in few instructions.
layout(constant_id = 1) const uint height = 1;
layout(constant_id = 2) const uint width = 1;
layout(constant_id = 3) const uint channels = 1;
layout(constant_id = 4) const uint stored_height = 1;
layout(constant_id = 5) const uint stored_width = 1;
layout(constant_id = 6) const uint stored_channels = 1;
layout(push_constant) uniform Push {
  uint batch;
  uint start;   // row of the input that the first sample becomes
  uint first;   // place of the first sample in the step's indices, which are bound
  uint place;   // its place in the batch of all ranks
  vec4 factor;  // value = byte * factor + offset, per channel
  vec4 offset;
  vec4 colour;        // largest deviation of brightness, contrast and saturation from 1, and of hue from 0 in turns
  uint flip;          // probability, in 2^-24
  uint crop_padding;  // pixels
  uint cutout;        // side of the square
};
layout(std430, binding = 0) readonly buffer Indices { uint indices[]; };
#if defined(SOURCE_columns)
layout(std430, binding = 1) readonly buffer Columns { vec4 columns[]; };
#else
layout(std430, binding = 1) readonly buffer Bytes { uint words[]; };
#endif
layout(std430, binding = 2) writeonly buffer Input { QUAD result[]; };

#if defined(SOURCE_columns)
#include "data/resize_rows.glsl"
#else
#include "data/image.glsl"
#endif
#if defined(FEED_augmented)
#include "step/step_state.glsl"
layout(std430, binding = 3) readonly buffer State { StepState state; };
#include "data/augment.glsl"
#endif

// Four channels of pixel {y, x} of row b of the input, as 0 to 255, from `channel` on.
vec4 input_pixel(uint b, uint y, uint x, uint channel) {
#if defined(SOURCE_columns)
  uint quads = (stored_channels + 3u) / 4u;
  Source source = Source(0u, stored_height, stored_width, b * stored_height * width * quads);
  return resized_pixel(source, y, x, height, width, min(channel / 4u, quads - 1u), quads);
#else
  uint sample_bytes = height * width * stored_channels;
  Image image = Image(indices[first + b] * sample_bytes, height, width, stored_channels);
  return pixel(image, y, x, uvec4(channel) + uvec4(0u, 1u, 2u, 3u));
#endif
}

vec4 normalised(vec4 bytes) { return fma(bytes, factor, offset); }

vec4 sample_quad(uint b, uint y, uint x, uint channel) {
#if defined(FEED_augmented)
  Draws draws = draws_of(place + b);
  if (is_cut_out(draws, y, x)) return vec4(0.0);
  ivec2 source = cropped_and_flipped(draws, y, x);
  bool inside = source.x >= 0 && source.x < int(width) && source.y >= 0 && source.y < int(height);
  vec4 bytes = inside ? input_pixel(b, uint(source.y), uint(source.x), channel) : vec4(0.0);
  return normalised(jittered(draws, bytes));
#else
  return normalised(input_pixel(b, y, x, channel));
#endif
}

void main() {
  uint i = linear_invocation();
  uint quads_per_pixel = (channels + 3u) / 4u;
  uint image_quads = height * width * quads_per_pixel;
  if (i >= batch * image_quads) return;
  uint place = i / quads_per_pixel;
  uint row = place / width;
  uint column = (i % quads_per_pixel) * 4u;
  vec4 v = sample_quad(row / height, row % height, place % width, column);
  uint quad = start * image_quads + i;
  result[quad] = to_quad(keep_columns(v, column, channels), quad);
}
