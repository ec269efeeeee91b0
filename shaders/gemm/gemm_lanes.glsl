// How kernels begin and end in which each of a subgroup's LANES invocations has rows of its own, and all columns of the
// tile. The including file defines LANES, ROWS, COLUMN_QUADS, lane(), row_of(tile, i) of a lane's row i, and its
// sums.
#ifndef HALFSTEP_GEMM_LANES
#define HALFSTEP_GEMM_LANES

#include "gemm/gemm_moments.glsl"

void start_sums(Tile tile) {
  [[unroll]] for (int i = 0; i < ROWS * COLUMN_QUADS; i++) {
    sums[i] = column_bias(tile, tile.column_quad + i % COLUMN_QUADS);
  }
}

void store_lanes_moments(Tile tile, int quad, Moments moments) {
  [[unroll]] for (uint mask = 1u; mask < LANES; mask *= 2u) moments = merged_across(moments, mask);
  if (lane() == 0) store_moments(tile.row / (ROWS * LANES), tile.column_quad + quad, moments);
}

// Not unrolled, and from a copy: see gemm_store.glsl.
void store_sums(Tile tile) {
  vec4 results[ROWS * COLUMN_QUADS];
  [[unroll]] for (int i = 0; i < ROWS * COLUMN_QUADS; i++) results[i] = sums[i];
  int quad = 0;
  do {
    Moments moments = NO_MOMENTS;
    int i = 0;
    do {
      int row = row_of(tile, i);
      vec4 v = results[i * COLUMN_QUADS + quad];
      store_quad(tile, row, tile.column_quad + quad, v);
      include_row(moments, tile, row, v);
      i++;
    } while (i < ROWS);
    if (FIND_MOMENTS) store_lanes_moments(tile, quad, moments);
    quad++;
  } while (quad < COLUMN_QUADS);
}

#endif
