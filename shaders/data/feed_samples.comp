#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
//! FEED = plain augmented
//! SOURCE = bytes columns
// Gathers a batch: sample[indices[first + b]] becomes row b of the input, augmented, normalised and cast, and its label
// row b of the labels. An index without a sample gives zeros and the label that losses and metrics leave out. Samples of
// the input's size are read as bytes; others are resized from the columns that data/resize_columns.comp left.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
  uint batch;
  uint height;  // of the input
  uint width;
  uint channels;
  uint stored_height;  // of the set's samples
  uint stored_width;
  uint stored_channels;
  uint samples;  // in the set
  vec4 factor;   // value = byte * factor + offset, per channel
  vec4 offset;
  vec4 colour;        // largest deviation of brightness, contrast and saturation from 1, and of hue from 0 in turns
  uint flip;          // probability, in 2^-24
  uint crop_padding;  // pixels
  uint cutout;        // side of the square
  uint first;         // offset of this batch in the step's indices, which are bound
};
layout(std430, binding = 0) readonly buffer Indices { uint indices[]; };
#if defined(SOURCE_columns)
layout(std430, binding = 1) readonly buffer Columns { vec4 columns[]; };
#else
layout(std430, binding = 1) readonly buffer Bytes { uint words[]; };
#endif
layout(std430, binding = 2) readonly buffer Labels { uint labels[]; };
layout(std430, binding = 3) writeonly buffer Input { QUAD result[]; };
layout(std430, binding = 4) writeonly buffer LabelInput { uvec4 result_labels[]; };

#if defined(SOURCE_columns)
#include "data/resize_rows.glsl"
#else
#include "data/image.glsl"
#endif
#if defined(FEED_augmented)
#include "step/step_state.glsl"
layout(std430, binding = 5) readonly buffer State { StepState state; };
#include "data/augment.glsl"
#endif

const uint IGNORED_LABEL = 0xFFFFFFFFu;

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
  Draws draws = draws_of(first + b);
  if (is_cut_out(draws, y, x)) return vec4(0.0);
  ivec2 source = cropped_and_flipped(draws, y, x);
  bool inside = source.x >= 0 && source.x < int(width) && source.y >= 0 && source.y < int(height);
  vec4 bytes = inside ? input_pixel(b, uint(source.y), uint(source.x), channel) : vec4(0.0);
  return normalised(jittered(draws, bytes));
#else
  return normalised(input_pixel(b, y, x, channel));
#endif
}

uint label_of(uint b) {
  if (b >= batch) return 0u;
  uint index = indices[first + b];
  return index < samples ? labels[index] : IGNORED_LABEL;
}

void main() {
  uint i = linear_invocation();
  uint quads_per_pixel = (channels + 3u) / 4u;
  uint sample_quads = batch * height * width * quads_per_pixel;
  if (i < sample_quads) {
    uint place = i / quads_per_pixel;
    uint row = place / width;
    uint b = row / height;
    uint index = indices[first + b];
    uint column = (i % quads_per_pixel) * 4u;
    vec4 v = vec4(0.0);
    if (index < samples) v = sample_quad(b, row % height, place % width, column);
    result[i] = to_quad(keep_columns(v, column, channels), i);
  } else if (i - sample_quads < (batch + 3u) / 4u) {
    uint q = i - sample_quads;
    result_labels[q] = uvec4(label_of(4u * q), label_of(4u * q + 1u), label_of(4u * q + 2u), label_of(4u * q + 3u));
  }
}
