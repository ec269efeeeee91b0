#version 440
#extension GL_EXT_shader_integer_mix : require
//! STORAGE = f32 words
// A network of dense layers, forward, for drivers where a load from one address by all invocations costs as much as one
// load (Target::uniform_loads): each invocation takes a row through all layers in registers, and all read the same
// weights, by address. Neither a shuffle nor a store is needed in between. STORAGE is the type of the result; x and the
// weights are f32.
//
// Such loads are executed even if an invocation is inactive, so every address must be valid. Loops are do-while, of
// which lavapipe runs no extra round.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#define NEAREST_ONLY
#include "common/indexing.glsl"

layout(constant_id = 18) const int QUADS = 8;   // of a hidden layer
layout(constant_id = 19) const int HIDDEN = 1;  // layers but the last
layout(constant_id = 20) const int COLUMNS = 32;  // of a hidden layer

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer QuadsAt { vec4 v[1040]; };  // of 64 columns: an offset, 64 rows
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer QuadAt { vec4 v[1]; };

layout(push_constant) uniform Push {
  QuadAt x;
  QuadAt weights;
  int rows;
  int in_quads;
  int out_columns;
  int out_quads;
};

int stored_column_quad;
#define RESULT_PITCH uint(out_quads)
#define WITHOUT_PAD(v, at) keep_columns(v, uint(stored_column_quad) * 4u, uint(out_columns))
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"
#include "mlp/mlp_activation.glsl"

vec4 values[QUADS];  // of this row, after a hidden layer
QuadAt at;           // the next layer's weights

// An activation may be infinite at 0, and the weights of columns that are not there are zeros.
vec4 hidden_quad(vec4 sum, int quad) {
  vec4 v = activated(sum);
  return COLUMNS == 4 * QUADS ? v : keep_columns(v, uint(quad) * 4u, uint(COLUMNS));
}

// Each layer's weights are rows of its outputs: the bias, and one for each input, in whole quads.
void first_layer(int row) {
  at = weights;
  QuadAt from = x + row * in_quads;
  vec4 sums[QUADS];
  [[unroll]] for (int q = 0; q < QUADS; q++) sums[q] = QuadsAt(at).v[q];
  at = at + QUADS;
  int k_quad = 0;
  do {
    vec4 v = (from + k_quad).v[0];
    [[unroll]] for (int kk = 0; kk < 4; kk++) {
      [[unroll]] for (int q = 0; q < QUADS; q++) sums[q] = fma(vec4(v[kk]), QuadsAt(at).v[kk * QUADS + q], sums[q]);
    }
    at = at + 4 * QUADS;
    k_quad++;
  } while (k_quad < in_quads);
  [[unroll]] for (int q = 0; q < QUADS; q++) values[q] = hidden_quad(sums[q], q);
}

void next_layer() {
  vec4 results[QUADS];
  [[unroll]] for (int q = 0; q < QUADS; q++) {
    vec4 sum = QuadsAt(at).v[q];
    [[unroll]] for (int k = 0; k < 4 * QUADS; k++) {
      sum = fma(vec4(values[k / 4][k % 4]), QuadsAt(at).v[(1 + k) * QUADS + q], sum);
    }
    results[q] = hidden_quad(sum, q);
  }
  [[unroll]] for (int q = 0; q < QUADS; q++) values[q] = results[q];
  at = at + (1 + 4 * QUADS) * QUADS;
}

void last_layer(int row, bool inside) {
  int q = 0;
  do {
    vec4 sum = at.v[0];
    [[unroll]] for (int k = 0; k < 4 * QUADS; k++) {
      sum = fma(vec4(values[k / 4][k % 4]), (at + (1 + k) * out_quads).v[0], sum);
    }
    stored_column_quad = q;
    if (inside) store(uint(row * out_quads + q), sum);
    at = at + 1;
    q++;
  } while (q < out_quads);
}

void main() {
  int row = int(linear_invocation());
  bool inside = row < rows;
  if (!inside) row = rows - 1;
  first_layer(row);
  if (HIDDEN > 1) {
    int layer = 1;
    do {
      next_layer();
      layer++;
    } while (layer < HIDDEN);
  }
  last_layer(row, inside);
}
