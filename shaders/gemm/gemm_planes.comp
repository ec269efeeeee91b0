#version 440
#extension GL_EXT_shader_integer_mix : require
//! STORAGE = f32 words
// Lays images {n, height, width, channels} out for the weight gradients of gemm_uniform.glsl: as planes {n, channels,
// height, width}, in f32, with as many zeros around as taps reach beyond the image. Each invocation has four pixels of a
// quad of channels.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;

layout(push_constant) uniform Push {
  int count;      // number of invocations
  int channels;
  ivec2 image;    // {height, width}
  ivec2 origin;   // the pixel of a plane's first number
  int lines;      // of a plane
  int line_quads;
};

layout(std430, binding = 0) readonly buffer Images { QUAD images[]; };
layout(std430, binding = 1) writeonly buffer Planes { vec4 planes[]; };

int channel_quads() { return (channels + 3) >> 2; }

vec4 channels_at(int n, ivec2 pixel, int channel_quad) {
  bool inside = all(lessThan(uvec2(pixel), uvec2(image)));  // negative numbers become large
  int at = ((n * image.x + pixel.x) * image.y + pixel.y) * channel_quads() + channel_quad;
  return inside ? from_quad(images[inside ? at : 0]) : vec4(0.0);
}

void main() {
  int at = int(linear_invocation());
  if (at >= count) return;
  int rest = at / channel_quads();
  int channel_quad = at - rest * channel_quads();
  int line = rest / line_quads;  // counted over all images
  int column_quad = rest - line * line_quads;
  int n = line / lines;
  line -= n * lines;
  mat4 v;
  [[unroll]] for (int e = 0; e < 4; e++) {
    v[e] = channels_at(n, origin + ivec2(line, column_quad * 4 + e), channel_quad);
  }
  v = transpose(v);
  [[unroll]] for (int e = 0; e < 4; e++) {
    int channel = channel_quad * 4 + e;
    int plane = n * channels + channel;
    if (channel < channels) planes[(plane * lines + line) * line_quads + column_quad] = v[e];
  }
}
