#version 450
//! STORAGE = words
// Copies the weight {k, n} and the bias {n} of a layer, in f32, to where mlp_rows.comp reads all of a network's: the bias,
// or zeros, and a row for each k, and zeros up to whole quads of k.
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(constant_id = 1) const bool HAS_BIAS = false;

layout(push_constant) uniform Push {
  uint count;      // quads that are written
  uint row_quads;
  uint k;
  uint first;      // quad of the layer
};

layout(std430, binding = 0) readonly buffer Weight { QUAD weight[]; };
layout(std430, binding = 1) readonly buffer Bias { QUAD bias[]; };
layout(std430, binding = 2) writeonly buffer Weights { vec4 to[]; };

void main() {
  uint at = linear_invocation();
  if (at >= count) return;
  vec4 v = vec4(0.0);
  if (at >= row_quads) {
    if (at < (1u + k) * row_quads) v = from_quad(weight[at - row_quads]);
  } else if (HAS_BIAS) {
    v = from_quad(bias[at]);
  }
  to[first + at] = v;
}
