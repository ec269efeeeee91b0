// The gradients of a network of dense layers for what comes before the activation of each hidden layer, and for x, as
// mlp_tile.glsl says. From these and from the layers' results the weights' gradients are products of their own.
//
// The weights are those of ops/mlp/mlp_pack.cpp without biases, from the last layer to the first.
#ifndef HALFSTEP_MLP_BACKWARD
#define HALFSTEP_MLP_BACKWARD

#define NEAREST_ONLY
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(push_constant) uniform Push {
  uint rows;
  uint in_columns;
  uint in_quads;
  uint in_padded;
  uint out_quads;
  uint out_padded;
};

layout(std430, binding = 0) readonly buffer Dy { QUAD dy[]; };

uint stored_column_quad;  // of the quad that store() writes
#define RESULT_PITCH in_quads
#define WITHOUT_PAD(v, at) keep_columns(v, stored_column_quad * 4u, in_columns)
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 19
#include "common/expression.glsl"
#include "mlp/mlp_activation.glsl"
#include "mlp/mlp_tile.glsl"

layout(constant_id = 21) const bool DX = true;  // whether the gradient for x is wanted

// Of each hidden layer: the activation's result or argument, and the gradient before it.
#define FOR_LAYERS(use) use(0) use(1) use(2) use(3) use(4) use(5) use(6) use(7)
#define DECLARE_LAYER(i)                                                           \
  layout(std430, binding = 3 + i) readonly buffer Kept##i { QUAD kept_##i[]; };    \
  layout(std430, binding = 11 + i) writeonly buffer Gradient##i { QUAD gradient_##i[]; };
FOR_LAYERS(DECLARE_LAYER)

void finish_layer(int layer, int row, int quad, vec4 v) {
  QUAD result = to_quad_of(1, vec4(0.0), 0);
  if (is_inside(row) && quad < ROW_QUADS) {
    uint at = uint(first_row + row) * uint(ROW_QUADS) + uint(quad);
    vec4 kept = vec4(0.0);
#define LOAD_KEPT(i) if (layer == i && i < HIDDEN) kept = from_quad(kept_##i[at]);
    FOR_LAYERS(LOAD_KEPT)
    result = to_quad_of(1, without_pad(activated(v, kept), quad), 0);
#define STORE_GRADIENT(i) if (layer == i && i < HIDDEN) gradient_##i[at] = result;
    FOR_LAYERS(STORE_GRADIENT)
  }
  keep_value(row, quad, from_quad(result));
}

void finish_dx(uint begin, int row, int quad, vec4 v) {
  stored_column_quad = begin + uint(quad);
  if (!is_inside(row) || stored_column_quad >= in_quads) return;
  store(uint(first_row + row) * in_quads + stored_column_quad, v);
}

uint layer_at;  // where the next layer's weights begin

void last_layer() {
  uint pitch = matrix_pitch(out_padded, uint(QUADS));
  clear_sums();
  for (uint begin = 0u; begin < out_quads; begin += uint(QUADS)) {
    LOAD_VALUES(dy, begin, out_quads)
    add_products(matrix_place(layer_at, pitch, begin, 0u), pitch, 4u * min(out_quads - begin, uint(QUADS)));
  }
  layer_at += 4u * out_padded * uint(QUADS);
}

void first_layer() {
  uint pitch = matrix_pitch(uint(QUADS), in_padded);
  for (uint begin = 0u; begin < in_quads; begin += uint(QUADS)) {
    clear_sums();
    add_products(matrix_place(layer_at, pitch, 0u, begin), pitch, uint(4 * QUADS));
    FOR_SUMS(finish_dx(begin, row, quad, v);)
  }
}

void main() {
  first_row = int(linear_group()) * TILE;
  if (uint(first_row) >= rows) return;
  layer_at = 0u;
  last_layer();
  for (int layer = HIDDEN - 1; layer >= 0; layer--) {
    finish_values();
    FOR_SUMS(finish_layer(layer, row, quad, v);)
    if (layer == 0) break;
    clear_sums();
    add_products(layer_at, uint(QUADS), uint(4 * QUADS));
    layer_at += uint(4 * QUADS * QUADS);
  }
  if (DX) first_layer();
}

#endif
