// What the kernels for GPUs have in common, mlp_forward.glsl and mlp_backward.glsl: a workgroup takes TILE rows through all
// layers. What lies between two layers stays in shared memory, and each layer's weights are read once by a workgroup, some
// rows at a time. The products are computed by the invocations, which runs anywhere, or by matrix units.
#ifndef HALFSTEP_MLP_TILE
#define HALFSTEP_MLP_TILE

layout(constant_id = 18) const int QUADS = 16;  // of a hidden layer in shared memory, with zeros past its columns
layout(constant_id = 19) const int HIDDEN = 1;  // layers but the last
layout(constant_id = 20) const int COLUMNS = 64;  // of a hidden layer
const int ROW_QUADS = (COLUMNS + 3) / 4;

const int THREADS = int(gl_WorkGroupSize.x);
int thread() { return int(gl_LocalInvocationIndex); }

int first_row;  // of the tile

// These have `values`, TILE rows of QUADS quads in shared memory, and
//   keep_value(row, quad, v)            stores a quad there
//   clear_sums()                        before
//   add_products(at, pitch, count)      adds the first `count` columns of the values, times a matrix that begins at quad
//                                       `at` of the weights, to the sums. All invocations must call it.
//   matrix_pitch(from_quads, to_quads), matrix_place(at, pitch, from_quad, to_quad)
//                                       how a matrix from as many columns to as many others is packed, and where the one
//                                       begins that is cut out of it
//   finish_values()                     must come between products and the next keep_value()
//   FOR_SUMS(use)                       runs `use` with `row`, `quad` and `v` for each quad of the sums that the
//                                       invocation has
#ifdef MATRIX_UNITS
#include "mlp/mlp_units.glsl"
#else
#include "mlp/mlp_products.glsl"
#endif

bool is_inside(int row) { return uint(first_row + row) < rows; }

// Quads from `begin` on of the tile's rows of a tensor, as values; zeros past its last row or quad.
#define LOAD_VALUES(tensor, begin, row_quads)                                           \
  barrier();                                                                            \
  for (int i = thread(); i < TILE * QUADS; i += THREADS) {                              \
    int row = i / QUADS;                                                                \
    uint quad = (begin) + uint(i % QUADS);                                              \
    bool inside = is_inside(row) && quad < (row_quads);                                 \
    vec4 v = from_quad(tensor[inside ? uint(first_row + row) * (row_quads) + quad : 0u]); \
    keep_value(row, i % QUADS, inside ? v : vec4(0.0));                                 \
  }

vec4 without_pad(vec4 v, int quad) {
  return COLUMNS == 4 * QUADS ? v : keep_columns(v, uint(quad) * 4u, uint(COLUMNS));
}

#endif
