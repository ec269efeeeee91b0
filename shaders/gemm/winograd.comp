#version 440
#extension GL_EXT_shader_integer_mix : require
//! PART = images weight result
//! STORAGE = f32
// The transforms of Winograd's convolution F(2x2, 3x3), see ops/gemm/winograd.h. Each has 16 matrices, with a place in each
// for every invocation: a quad.
//   images   of the 4x4 pixels d of each tile: B^T d B, as matrices {tiles, channels}
//   weight   of the 3x3 taps g of each pair of channels: G g G^T, as matrices {in, out}
//   result   of the matrices {tiles, columns} that are products of those, m: A^T m A, which are 2x2 results
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool ADD_BIAS = false;  // result
layout(constant_id = 2) const bool TURNED = false;    // weight: by half a turn, as for a data gradient

layout(push_constant) uniform Push {
  ivec2 tiles;   // of an image {height, width}; not for a weight
  ivec2 size;    // pixels of an image {height, width}, which is read or a result; not for a weight
  ivec2 offset;  // images: the first pixel of the first tile
  int count;     // quads of a matrix
  int pitch;     // quads of a pixel
  int columns;   // result: channels
};

#if defined(PART_result)
int column_quad;  // of the result that is stored
#define RESULT_PITCH uint(pitch)
#define WITHOUT_PAD(v, at) keep_columns(v, uint(column_quad) * 4u, uint(columns))
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"
layout(std430, binding = 0) readonly buffer Matrices { vec4 matrices[]; };
layout(std430, binding = 2) readonly buffer Bias { vec4 bias[]; };
#else
layout(std430, binding = 0) readonly buffer Given { vec4 given[]; };
layout(std430, binding = 1) writeonly buffer Matrices { vec4 matrices[]; };
#endif

// Quad `quad` of a tile, whose first pixel of a result is `pixel`.
struct Place {
  int image;
  ivec2 pixel;
  int quad;
};

Place place_of(int at) {
  int tile = at / pitch;
  int line = tile / tiles.y;
  int image = line / tiles.x;
  return Place(image, 2 * ivec2(line - image * tiles.x, tile - line * tiles.y), at - tile * pitch);
}

#if defined(PART_images)
vec4 pixel_at(Place place, ivec2 shift) {
  ivec2 pixel = place.pixel + offset + shift;
  bool inside = all(lessThan(uvec2(pixel), uvec2(size)));  // negative numbers become large
  int from = ((place.image * size.x + pixel.x) * size.y + pixel.y) * pitch + place.quad;
  vec4 v = given[inside ? from : 0];
  return inside ? v : vec4(0.0);
}

void transform(int at) {
  Place place = place_of(at);
  vec4 v[4][4];  // d B
  [[unroll]] for (int y = 0; y < 4; y++) {
    vec4 d[4];
    [[unroll]] for (int x = 0; x < 4; x++) d[x] = pixel_at(place, ivec2(y, x));
    v[y][0] = d[0] - d[2];
    v[y][1] = d[1] + d[2];
    v[y][2] = d[2] - d[1];
    v[y][3] = d[1] - d[3];
  }
  [[unroll]] for (int x = 0; x < 4; x++) {
    matrices[x * count + at] = v[0][x] - v[2][x];
    matrices[(4 + x) * count + at] = v[1][x] + v[2][x];
    matrices[(8 + x) * count + at] = v[2][x] - v[1][x];
    matrices[(12 + x) * count + at] = v[1][x] - v[3][x];
  }
}
#elif defined(PART_weight)
void transform(int at) {
  vec4 v[3][4];  // g G^T
  [[unroll]] for (int y = 0; y < 3; y++) {
    vec4 g[3];
    [[unroll]] for (int x = 0; x < 3; x++) {
      int tap = y * 3 + x;
      g[x] = given[(TURNED ? 8 - tap : tap) * count + at];
    }
    v[y][0] = g[0];
    v[y][1] = 0.5 * (g[0] + g[2] + g[1]);
    v[y][2] = 0.5 * (g[0] + g[2] - g[1]);
    v[y][3] = g[2];
  }
  [[unroll]] for (int x = 0; x < 4; x++) {
    matrices[x * count + at] = v[0][x];
    matrices[(4 + x) * count + at] = 0.5 * (v[0][x] + v[2][x] + v[1][x]);
    matrices[(8 + x) * count + at] = 0.5 * (v[0][x] + v[2][x] - v[1][x]);
    matrices[(12 + x) * count + at] = v[2][x];
  }
}
#else
void transform(int at) {
  Place place = place_of(at);
  column_quad = place.quad;
  vec4 v[4][2];  // m A
  [[unroll]] for (int y = 0; y < 4; y++) {
    vec4 m[4];
    [[unroll]] for (int x = 0; x < 4; x++) m[x] = matrices[(y * 4 + x) * count + at];
    v[y][0] = m[0] + m[1] + m[2];
    v[y][1] = m[1] - m[2] - m[3];
  }
  vec4 added = ADD_BIAS ? bias[column_quad] : vec4(0.0);
  vec4 upper[2];
  vec4 lower[2];
  [[unroll]] for (int x = 0; x < 2; x++) {
    upper[x] = v[0][x] + v[1][x] + v[2][x] + added;
    lower[x] = v[1][x] - v[2][x] - v[3][x] + added;
  }
  // Not unrolled, and without an array that is indexed: see gemm_store.glsl.
  for (int i = 0; i < 4; i++) {
    ivec2 pixel = place.pixel + ivec2(i >> 1, i & 1);
    int to = ((place.image * size.x + pixel.x) * size.y + pixel.y) * pitch + column_quad;
    vec4 left = i < 2 ? upper[0] : lower[0];
    vec4 right = i < 2 ? upper[1] : lower[1];
    if (all(lessThan(pixel, size))) store(uint(to), (i & 1) == 0 ? left : right);
  }
}
#endif

void main() {
  int at = int(linear_invocation());
  if (at < count) transform(at);
}
