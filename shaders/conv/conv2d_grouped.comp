#version 440
#extension GL_EXT_shader_integer_mix : require
//! PART = forward data_gradient weight_gradient
//! STORAGE = f32 words
// Convolution in groups whose channels do not start on quads, or by large kernels in depthwise ones, and its gradients:
// each invocation computes one quad of the result, element by element. Groups that start on quads use gemm.comp. The
// sum of a result, over taps or segments of lines of positions, may be split into parts; gemm/gemm_reduce.comp adds
// those.
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool ADD_BIAS = false;
layout(constant_id = 2) const bool PARTIALS_IN_F16 = false;  // rounded after each tap, or segment of a line
layout(constant_id = 3) const bool IN_PARTS = false;

layout(push_constant) uniform Push {
  int quads;          // of the result
  int columns;        // of the result
  int images;         // of the batch
  int in_channels;    // of one group
  int out_channels;   // of one group
  int x_pitch;        // quads of a pixel of the images
  int y_pitch;        // quads of a pixel of the output, and of a row of the weight
  int result_pitch;   // quads of a row of the result
  int parts;
  int part_length;    // taps, or segments of lines, per part
  int line_segments;  // of a line of the output; this and the next are the weight gradient's only
  int length;         // positions of a segment
  ivec2 image;        // this and all below {height, width}
  ivec2 positions;    // of the output
  ivec2 kernel;
  ivec2 stride;
  ivec2 padding;
  ivec2 dilation;
};

#if defined(PART_forward)
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer W { QUAD w[]; };
layout(std430, binding = 2) writeonly buffer Y { QUAD y[]; };
layout(std430, binding = 3) readonly buffer Bias { QUAD bias[]; };
#define OUT y
#elif defined(PART_data_gradient)
layout(std430, binding = 0) readonly buffer Y { QUAD y[]; };
layout(std430, binding = 1) readonly buffer W { QUAD w[]; };
layout(std430, binding = 2) writeonly buffer X { QUAD x[]; };
#define OUT x
#else
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer Y { QUAD y[]; };
layout(std430, binding = 2) writeonly buffer W { QUAD w[]; };
#define OUT w
#endif

layout(std430, binding = 2) writeonly buffer Parts { vec4 parts_of_result[]; };

// One element of a row.
#define ELEMENT(tensor, pitch, row, column) from_quad(tensor[(row) * (pitch) + (column) / 4])[(column) % 4]

float partial(float v) { return PARTIALS_IN_F16 ? rounded_to_half(vec4(v)).x : v; }

// The position {n, row, column} of a pixel.
ivec3 place_of(int pixel, ivec2 extents) {
  int line = pixel / extents.y;
  int n = line / extents.x;
  return ivec3(n, line - n * extents.x, pixel - line * extents.y);
}

bool within(ivec2 at, ivec2 extents) {
  return all(greaterThanEqual(at, ivec2(0))) && all(lessThan(at, extents));
}

int pixel_of(int n, ivec2 at, ivec2 extents) { return (n * extents.x + at.x) * extents.y + at.y; }

#if defined(PART_forward)
float element(int pixel, int o, int part) {
  int first = o / out_channels * in_channels;
  ivec3 place = place_of(pixel, positions);
  float sum = ADD_BIAS && part == 0 ? ELEMENT(bias, 0, 0, o) : 0.0;
  int end = min((part + 1) * part_length, kernel.x * kernel.y);
  for (int tap = part * part_length; tap < end; tap++) {
    ivec2 at = place.yz * stride + ivec2(tap / kernel.y, tap % kernel.y) * dilation - padding;
    if (within(at, image)) {
      int from = pixel_of(place.x, at, image);
      for (int c = 0; c < in_channels; c++) {
        sum += ELEMENT(x, x_pitch, from, first + c) * ELEMENT(w, y_pitch, tap * in_channels + c, o);
      }
      sum = partial(sum);
    }
  }
  return sum;
}
#elif defined(PART_data_gradient)
float element(int pixel, int channel, int part) {
  int group = channel / in_channels;
  int c = channel - group * in_channels;
  ivec3 place = place_of(pixel, image);
  float sum = 0.0;
  int end = min((part + 1) * part_length, kernel.x * kernel.y);
  for (int tap = part * part_length; tap < end; tap++) {
    ivec2 scaled = place.yz + padding - ivec2(tap / kernel.y, tap % kernel.y) * dilation;
    ivec2 at = scaled / stride;
    if (all(greaterThanEqual(scaled, ivec2(0))) && all(equal(at * stride, scaled)) && within(at, positions)) {
      int from = pixel_of(place.x, at, positions);
      for (int o = group * out_channels; o < (group + 1) * out_channels; o++) {
        sum += ELEMENT(y, y_pitch, from, o) * ELEMENT(w, y_pitch, tap * in_channels + c, o);
      }
      sum = partial(sum);
    }
  }
  return sum;
}
#else
float element(int row, int o, int part) {
  int tap = row / in_channels;
  int channel = o / out_channels * in_channels + row - tap * in_channels;
  ivec2 shift = ivec2(tap / kernel.y, tap % kernel.y) * dilation - padding;
  float sum = 0.0;
  int end = min((part + 1) * part_length, images * positions.x * line_segments);
  for (int segment = part * part_length; segment < end; segment++) {
    int line = segment / line_segments;
    int first = (segment - line * line_segments) * length;
    ivec3 place = place_of(line * positions.y, positions);
    for (int column = first; column < min(first + length, positions.y); column++) {
      ivec2 at = ivec2(place.y, column) * stride + shift;
      if (within(at, image)) {
        sum += ELEMENT(x, x_pitch, pixel_of(place.x, at, image), channel) *
               ELEMENT(y, y_pitch, line * positions.y + column, o);
      }
    }
    sum = partial(sum);
  }
  return sum;
}
#endif

void main() {
  int at = int(linear_invocation());
  int part = at / quads;
  if (part < parts) {
    int quad = at - part * quads;
    int row = quad / result_pitch;
    int column = (quad - row * result_pitch) * 4;
    vec4 v = vec4(0.0);
    for (int i = 0; i < 4; i++) {
      if (column + i < columns) v[i] = element(row, column + i, part);
    }
    if (IN_PARTS) {
      parts_of_result[at] = v;
    } else {
      OUT[at] = to_quad(v, at);
    }
  }
}
