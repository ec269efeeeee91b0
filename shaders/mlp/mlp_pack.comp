#version 440
#extension GL_EXT_shader_integer_mix : require
//! STORAGE = f32 words
// Copies the weights {k, n} and the biases {n} of up to five layers to where the kernels of a network read all of them, one
// layer after the other: the bias, or zeros, if the kernel reads it; then the matrix, or its transpose, with zeros up to
// whole rows and quads. In f32, or in STORAGE where matrix units read it.
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"
#define NEAREST_ONLY
#include "common/precision.glsl"

layout(constant_id = 1) const uint HAS_BIAS = 0u;  // a bit for each layer
layout(constant_id = 2) const bool TRANSPOSED = false;
layout(constant_id = 3) const bool IN_STORAGE = false;

struct Layer {
  uint first;       // quad
  uint bias_quads;  // of the bias before the matrix
  uint rows, quads; // of the matrix as it is stored
  uint k, n;
};
const int LAYERS = 5;

layout(push_constant) uniform Push {
  uint end;  // of the last layer
  Layer layers[LAYERS];
};

#define DECLARE_LAYER(i)                                                           \
  layout(std430, binding = 2 * i) readonly buffer Weight##i { QUAD weight_##i[]; }; \
  layout(std430, binding = 2 * i + 1) readonly buffer Bias##i { QUAD bias_##i[]; };
DECLARE_LAYER(0)
DECLARE_LAYER(1)
DECLARE_LAYER(2)
DECLARE_LAYER(3)
DECLARE_LAYER(4)
layout(std430, binding = 10) writeonly buffer Packed { QUAD packed[]; };
layout(std430, binding = 10) writeonly buffer WidePacked { vec4 wide_packed[]; };

// A quad of the stored matrix, in row `row`.
#define MATRIX_QUAD(i)                                                             \
  if (TRANSPOSED) {                                                                \
    for (uint e = 0u; e < 4u; e++) {                                               \
      uint k = quad * 4u + e;                                                      \
      bool inside = k < own.k && row < own.n;                                      \
      vec4 from = from_quad(weight_##i[inside ? k * n_quads + row / 4u : 0u]);     \
      v[e] = inside ? from[row % 4u] : 0.0;                                        \
    }                                                                              \
  } else if (row < own.k && quad < n_quads) {                                      \
    v = from_quad(weight_##i[row * n_quads + quad]);                               \
  }

#define TAKE_LAYER(i)                                                              \
  if (layer == i) {                                                                \
    if (at < own.bias_quads) {                                                     \
      if ((HAS_BIAS >> i & 1u) != 0u && at < n_quads) v = from_quad(bias_##i[at]); \
    } else {                                                                       \
      MATRIX_QUAD(i)                                                               \
    }                                                                              \
  }

void main() {
  uint to = layers[0].first + linear_invocation();
  if (to >= end) return;
  int layer = 0;
  for (int i = 1; i < LAYERS; i++) {
    if (to >= layers[i].first) layer = i;
  }
  Layer own = layers[layer];
  uint n_quads = (own.n + 3u) / 4u;
  uint at = to - own.first;
  uint row = (at - own.bias_quads) / own.quads;
  uint quad = (at - own.bias_quads) % own.quads;
  vec4 v = vec4(0.0);
  TAKE_LAYER(0)
  TAKE_LAYER(1)
  TAKE_LAYER(2)
  TAKE_LAYER(3)
  TAKE_LAYER(4)
#ifdef NARROW
  if (IN_STORAGE) {
    packed[to] = quad_of_bits(bits_nearest(v));  // exact
    return;
  }
#endif
  wide_packed[to] = v;
}
