// From accumulators to C.
#ifndef HALFSTEP_GEMM_STORE
#define HALFSTEP_GEMM_STORE

#include "common/gemm.glsl"

// Rounds a partial sum to f16.
vec4 f16_partial(vec4 v) { return from_half_bits(half_bits_nearest(v)); }

// What row of C a row of A makes; -1 for padding.
int result_row(int row) {
#ifdef OPERANDS_pixels_row
  int padded = quads(channels) * 4;
  int tap = row / padded;
  int channel = row - tap * padded;
  return channel < channels ? tap * channels + channel : -1;
#else
  return row;
#endif
}

// The bias of a quad of columns.
vec4 column_bias(Tile tile, int column_quad) {
  return ADD_BIAS && column_quad < quads(columns) ? from_quad(bias[tile.bias_base + column_quad]) : vec4(0.0);
}

// Writes columns 4 column_quad ... of a row, where there is such a quad; its padding becomes zeros.
void store_quad(Tile tile, int row, int column_quad, vec4 v) {
  int place = result_row(row);
  if (row < tile.row_end && place >= 0 && column_quad < quads(columns)) {
    v = keep_columns(v, uint(column_quad) * 4u, uint(columns));
    int at = tile.c_base + place * c_pitch + column_quad;
    if (RESULT_IN_F32) {
      c_f32[at] = v;
    } else {
      c[at] = to_quad(v, at);
    }
  }
}

#endif
