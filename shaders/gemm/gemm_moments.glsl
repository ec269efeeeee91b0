// The column moments of C, computed as C is stored: for the rows of a tile, or a part of them, the mean and the sum of
// squared differences from it; {parts, 2, columns}, in f32. A batch norm merges them.
#ifndef HALFSTEP_GEMM_MOMENTS
#define HALFSTEP_GEMM_MOMENTS

#include "common/moments.glsl"
#include "gemm/gemm_store.glsl"

const bool FIND_MOMENTS = EDGE == 4u || EDGE == 5u;
const bool C_IS_NARROW = EDGE == 4u;  // though what an expression makes of it may be stored in f32
layout(std430, binding = 3) writeonly buffer ColumnMoments { vec4 column_moments[]; };

// C's values as they will be read back.
vec4 as_read(vec4 v) { return C_IS_NARROW ? stored(v) : v; }

#ifdef ACROSS_LANES
DECLARE_ELEMENTS(3, ColumnMoments, column_moments)

// Of each of these columns, of which this invocation has the mean and the squares of one of the columns from a quad on.
void store_moments(int part, int column_quad, float mean, float squares) {
  int at = part * 2 * c_pitch + column_quad;
  Parts parts;
  parts.at = ivec4(at, at + c_pitch, -1, -1);
  parts.columns = ivec4(min(quads(columns) - column_quad, LANE_QUADS) * 4);
  parts.padded = bvec4(column_quad * 4 + result_lane >= columns);
  vec4 v = WITHOUT_PAD(vec4(mean, squares, 0.0, 0.0), parts);
  if (WHOLE_PARTS) {
    SET_WHOLE(column_moments, at, v.x)
    SET_WHOLE(column_moments, at + c_pitch, v.y)
  } else {
    SET_PARTS(column_moments, parts, v)
  }
}

#else

// Adds one row; Welford 1962.
void include_row(inout Moments moments, Tile tile, int row, vec4 v) {
  if (FIND_MOMENTS && row < tile.row_end) {
    vec4 read = as_read(v);
    vec4 difference = read - moments.mean;
    moments.rows += 1.0;
    moments.mean += difference / moments.rows;
    moments.squares += difference * (read - moments.mean);
  }
}

void store_moments(int part, int column_quad, Moments moments) {
  if (!FIND_MOMENTS || moments.rows == 0.0 || column_quad >= quads(columns)) return;
  int at = part * 2 * c_pitch + column_quad;
  uint column = uint(column_quad) * 4u;
  column_moments[at] = keep_columns(moments.mean, column, uint(columns));
  column_moments[at + c_pitch] = keep_columns(moments.squares, column, uint(columns));
}

#endif

#ifdef SHUFFLES
// Merged with those of the lane whose index differs in the bits of `mask`.
Moments merged_across(Moments moments, uint mask) {
  Moments other;
  other.rows = subgroupShuffleXor(moments.rows, mask);
  [[unroll]] for (int e = 0; e < 4; e++) {
    other.mean[e] = subgroupShuffleXor(moments.mean[e], mask);
    other.squares[e] = subgroupShuffleXor(moments.squares[e], mask);
  }
  return merged(moments, other);
}
#endif

#endif
