#version 440
#extension GL_EXT_shader_integer_mix : require
//! PART = forward data_gradient weight_gradient
//! STORAGE = f32 words
//! PARTIALS = sums_f32 sums_f16
// Depthwise convolution and its gradients, one quad of channels at a time. Forward and data gradient: each invocation
// computes POSITIONS neighbours of a line, which share the weight that it loads. Weight gradient: each invocation sums
// one tap over a part of the lines' segments; gemm/gemm_reduce.comp adds the parts.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool ADD_BIAS = false;
layout(constant_id = 2) const bool STRIDED = false;  // stride is not 1

layout(push_constant) uniform Push {
  int count;          // of invocations
  int columns;        // channels
  int pitch;          // quads of a pixel, and of a row of the weight
  int blocks;         // in a line: of POSITIONS of the result; for the weight gradient, segments of the output's line
  int segments;       // in all lines of all images; this and the next are the weight gradient's only
  int part_segments;  // segments per part
  ivec2 image;        // this and all below {height, width}
  ivec2 positions;    // of the output
  ivec2 kernel;
  ivec2 stride;
  ivec2 padding;
  ivec2 dilation;
};

// a and b are the factors of the sum's terms: images and weight, cotangent and weight, images and cotangent.
layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) readonly buffer B { QUAD b[]; };
#ifdef PART_weight_gradient
layout(std430, binding = 2) writeonly buffer Parts { vec4 parts[]; };
#else
layout(std430, binding = 2) writeonly buffer C { QUAD c[]; };
#endif
#ifdef PART_forward
layout(std430, binding = 3) readonly buffer Bias { QUAD bias[]; };
#endif

// f16 sums are rounded after each tap, or segment of a line. This is an axis, not a specialization constant, because
// SwiftShader would execute both sides of a branch on one, which takes four times as long in total.
#if defined(PARTIALS_sums_f16)
vec4 partial(vec4 v) { return rounded_to_half(v); }
#else
vec4 partial(vec4 v) { return v; }
#endif

#ifndef PART_weight_gradient
const int POSITIONS = 4;

#ifdef PART_forward
#define TO positions
#define FROM image
#else
#define TO image
#define FROM positions
#endif

// The row or column of FROM that position `at` of TO reads under a tap; outside FROM if there is none. No branches here
// and below: software drivers execute both sides, and keep every variable that changes in them in memory.
int source(int at, int tap, int axis) {
#ifdef PART_forward
  return at * stride[axis] + tap * dilation[axis] - padding[axis];
#else
  int place = at + padding[axis] - tap * dilation[axis];
  if (!STRIDED) return place;
  int quotient = place / stride[axis];
  return quotient * stride[axis] == place ? quotient : -1;
#endif
}

bool is_inside(int place, int axis) { return uint(place) < uint(FROM[axis]); }
int inside(int place, int axis) { return clamp(place, 0, FROM[axis] - 1); }

void main() {
  int at = int(linear_invocation());
  if (at >= count) return;
  int quad = at % pitch;
  int block = at / pitch;
  int line = block / blocks;
  int first = (block - line * blocks) * POSITIONS;
  int n = line / TO.x;
  vec4 sums[POSITIONS];
  vec4 start = vec4(0.0);
#ifdef PART_forward
  if (ADD_BIAS) start = from_quad(bias[quad]);
#endif
  [[unroll]] for (int i = 0; i < POSITIONS; i++) sums[i] = start;
  for (int row = 0; row < kernel.x; row++) {
    int from_row = source(line - n * TO.x, row, 0);
    bool row_counts = is_inside(from_row, 0);
    int from_line = (n * FROM.x + inside(from_row, 0)) * FROM.y;
    for (int column = 0; column < kernel.y; column++) {
      vec4 weight = from_quad(b[(row * kernel.y + column) * pitch + quad]);
      [[unroll]] for (int i = 0; i < POSITIONS; i++) {
        int from = source(first + i, column, 1);
        bvec4 counts = bvec4(row_counts && is_inside(from, 1));
        vec4 v = from_quad(a[(from_line + inside(from, 1)) * pitch + quad]);
        // Padding contributes nothing, even if the weight is not finite: zero times infinity would be NaN.
        vec4 sum = fma(v, weight, sums[i]);
        sums[i] = mix(sums[i], partial(sum), counts);
      }
    }
  }
  [[unroll]] for (int i = 0; i < POSITIONS; i++) {
    if (first + i < TO.y) {
      int place = (line * TO.y + first + i) * pitch + quad;
      c[place] = to_quad(keep_columns(sums[i], uint(quad) * 4u, uint(columns)), place);
    }
  }
}

#else

// The columns of positions whose pixel under a tap is inside the image: from x up to but not including y.
ivec2 columns_inside(int shift) {
  int first = shift < 0 ? (stride.y - 1 - shift) / stride.y : 0;
  int end = shift < image.y ? (image.y - 1 - shift) / stride.y + 1 : 0;
  return ivec2(first, min(end, positions.y));
}

void main() {
  int at = int(linear_invocation());
  if (at >= count) return;
  int quad = at % pitch;
  int tap = at / pitch % (kernel.x * kernel.y);
  int part = at / (pitch * kernel.x * kernel.y);
  ivec2 shift = ivec2(tap / kernel.y, tap % kernel.y) * dilation - padding;
  ivec2 inside = columns_inside(shift.y);
  int length = (positions.y + blocks - 1) / blocks;  // of a segment
  int end = min((part + 1) * part_segments, segments);
  vec4 sum = vec4(0.0);
  for (int segment = part * part_segments; segment < end; segment++) {
    int line = segment / blocks;
    int first = (segment - line * blocks) * length;
    int n = line / positions.x;
    int row = (line - n * positions.x) * stride.x + shift.x;
    if (row >= 0 && row < image.x) {
      int pixel = (n * image.x + row) * image.y + shift.y;
      for (int column = max(inside.x, first); column < min(inside.y, first + length); column++) {
        sum = fma(from_quad(a[(pixel + column * stride.y) * pitch + quad]),
                  from_quad(b[(line * positions.y + column) * pitch + quad]), sum);
      }
      sum = partial(sum);
    }
  }
  parts[at] = sum;
}
#endif
