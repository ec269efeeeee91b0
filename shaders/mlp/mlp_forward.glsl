// A network of dense layers, forward, as mlp_tile.glsl says. With KEEP_layers, what gradients need of hidden layers is
// stored: their results, and with KEPT_INPUTS the activations' arguments too. What is stored is what the next layer reads.
//
// The weights are those of ops/mlp/mlp_pack.cpp, with the bias of each layer before its matrix. The first layer's matrix
// has in_padded rows, and the last one's out_padded columns, in quads.
#ifndef HALFSTEP_MLP_FORWARD
#define HALFSTEP_MLP_FORWARD

#define NEAREST_ONLY
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(push_constant) uniform Push {
  uint rows;
  uint in_quads;
  uint in_padded;
  uint out_columns;
  uint out_quads;
  uint out_padded;
};

layout(std430, binding = 0) readonly buffer X { QUAD x[]; };

uint stored_column_quad;  // of the quad that store() writes
#define RESULT_PITCH out_quads
#define WITHOUT_PAD(v, at) keep_columns(v, stored_column_quad * 4u, out_columns)
#define RESULT_BINDING 2
#ifdef KEEP_layers
#define FIRST_ARGUMENT 19
#else
#define FIRST_ARGUMENT 3
#endif
#include "common/expression.glsl"
#include "mlp/mlp_activation.glsl"
#include "mlp/mlp_tile.glsl"

#ifdef KEEP_layers
layout(constant_id = 21) const bool KEPT_INPUTS = false;

// The results of hidden layers, and from KEPT_LAYERS on the arguments of their activations.
const int KEPT_LAYERS = 8;
#define FOR_KEPT(use) use(0) use(1) use(2) use(3) use(4) use(5) use(6) use(7) \
  use(8) use(9) use(10) use(11) use(12) use(13) use(14) use(15)
#define DECLARE_KEPT(i) layout(std430, binding = 3 + i) writeonly buffer Kept##i { QUAD kept_##i[]; };
FOR_KEPT(DECLARE_KEPT)

void keep(int number, int row, int quad, QUAD q) {
  if (!is_inside(row) || quad >= ROW_QUADS) return;
  uint at = uint(first_row + row) * uint(ROW_QUADS) + uint(quad);
#define STORE_KEPT(i) if (number == i && i % KEPT_LAYERS < HIDDEN && (i < KEPT_LAYERS || KEPT_INPUTS)) kept_##i[at] = q;
  FOR_KEPT(STORE_KEPT)
}
#endif

uint layer_at;  // where the next layer's weights begin

void finish_layer(int layer, int row, int quad, vec4 v) {
  v += weights_at(layer_at + uint(quad));
#ifdef KEEP_layers
  if (KEPT_INPUTS) {
    QUAD argument = to_quad_of(1, v, 0);
    keep(KEPT_LAYERS + layer, row, quad, argument);
    v = from_quad(argument);
  }
#endif
  QUAD result = to_quad_of(1, without_pad(activated(v), quad), 0);
#ifdef KEEP_layers
  keep(layer, row, quad, result);
#endif
  keep_value(row, quad, from_quad(result));
}

void finish_result(uint begin, int row, int quad, vec4 v) {
  stored_column_quad = begin + uint(quad);
  if (!is_inside(row) || stored_column_quad >= out_quads) return;
  store(uint(first_row + row) * out_quads + stored_column_quad, v + weights_at(layer_at + stored_column_quad));
}

void first_layer() {
  uint pitch = matrix_pitch(in_padded, uint(QUADS));
  clear_sums();
  for (uint begin = 0u; begin < in_quads; begin += uint(QUADS)) {
    LOAD_VALUES(x, begin, in_quads)
    add_products(matrix_place(layer_at + uint(QUADS), pitch, begin, 0u), pitch, 4u * min(in_quads - begin, uint(QUADS)));
  }
  finish_values();
  FOR_SUMS(finish_layer(0, row, quad, v);)
  layer_at += (1u + 4u * in_padded) * uint(QUADS);
}

void last_layer() {
  uint pitch = matrix_pitch(uint(QUADS), out_padded);
  for (uint begin = 0u; begin < out_quads; begin += uint(QUADS)) {
    clear_sums();
    add_products(matrix_place(layer_at + out_padded, pitch, 0u, begin), pitch, uint(4 * QUADS));
    FOR_SUMS(finish_result(begin, row, quad, v);)
  }
}

void main() {
  first_row = int(linear_group()) * TILE;
  if (uint(first_row) >= rows) return;
  layer_at = 0u;
  first_layer();
  for (int layer = 1; layer < HIDDEN; layer++) {
    clear_sums();
    add_products(layer_at + uint(QUADS), uint(QUADS), uint(4 * QUADS));
    finish_values();
    FOR_SUMS(finish_layer(layer, row, quad, v);)
    layer_at += uint((1 + 4 * QUADS) * QUADS);
  }
  last_layer();
}

#endif
