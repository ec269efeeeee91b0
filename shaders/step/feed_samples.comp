#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
// Gathers a batch from bytes: sample[indices[b]] becomes row b of the input, normalised and cast, and its label row b of
// the labels. An index without a sample gives zeros and the label that losses and metrics leave out.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
  uint batch;
  uint rows;      // of a sample: its extents but the last
  uint channels;  // its last extent
  uint samples;   // in the set
  vec4 factor;    // value = byte * factor + offset, by channel
  vec4 offset;
};
layout(std430, binding = 0) readonly buffer Indices { uint indices[]; };
layout(std430, binding = 1) readonly buffer Bytes { uint words[]; };
layout(std430, binding = 2) readonly buffer Labels { uint labels[]; };
layout(std430, binding = 3) writeonly buffer Input { QUAD result[]; };
layout(std430, binding = 4) writeonly buffer LabelInput { uvec4 result_labels[]; };

const uint IGNORED_LABEL = 0xFFFFFFFFu;

float byte_at(uint i) { return float((words[i >> 2] >> ((i & 3u) * 8u)) & 0xFFu); }

vec4 normalised(uint sample_index, uint row, uint first_channel) {
  uint base = (sample_index * rows + row) * channels;
  vec4 v = vec4(0.0);
  for (int i = 0; i < 4; i++) {
    uint channel = first_channel + uint(i);
    // More than four channels share one normalisation, which stands in all four places.
    uint which = channel & 3u;
    if (channel < channels) v[i] = fma(byte_at(base + channel), factor[which], offset[which]);
  }
  return v;
}

uint label_of(uint b) {
  if (b >= batch) return 0u;
  uint index = indices[b];
  return index < samples ? labels[index] : IGNORED_LABEL;
}

void main() {
  uint i = linear_invocation();
  uint quads_per_row = (channels + 3u) / 4u;
  uint sample_quads = batch * rows * quads_per_row;
  if (i < sample_quads) {
    uint row = i / quads_per_row;
    uint index = indices[row / rows];
    vec4 v = index < samples ? normalised(index, row % rows, (i % quads_per_row) * 4u) : vec4(0.0);
    result[i] = to_quad(v);
  } else if (i - sample_quads < (batch + 3u) / 4u) {
    uint q = i - sample_quads;
    result_labels[q] = uvec4(label_of(4u * q), label_of(4u * q + 1u), label_of(4u * q + 2u), label_of(4u * q + 3u));
  }
}
