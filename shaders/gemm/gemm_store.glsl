// Stores accumulators to C through an expression, which is much code until a kernel is specialized. So kernels store in
// a loop that is not unrolled, and from a copy of the accumulators, since an array that is indexed dynamically cannot
// stay in registers. The kernels that store parts of four rows at once (ACROSS_LANES) do so a few times only.
#ifndef HALFSTEP_GEMM_STORE
#define HALFSTEP_GEMM_STORE

#include "gemm/gemm.glsl"

#ifdef ACROSS_LANES
#include "common/across_lanes.glsl"
DECLARE_ELEMENTS(3, Edge, edge)
#else
int stored_column_quad;  // of the quad that store() writes
#define WITHOUT_PAD(v, at) keep_columns(v, uint(stored_column_quad) * 4u, uint(columns))
#endif
#define RESULT_PITCH uint(c_pitch)
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 4
#include "common/expression.glsl"

// What row of C a row of A makes; -1 for padding. The row of ones makes the one after the last.
int result_row(Tile tile, int row) {
  int made = row;
#ifdef OPERANDS_pixels_row
  int padded = quads(channels) * 4;
  int tap = row / padded;
  int channel = row - tap * padded;
  made = channel < channels ? tap * channels + channel : -1;
#else
#ifdef TAPS
  if (IN_PHASES) {
    int position = row - tile.phase * phase_rows();
    int line = position / grid.y;
    int n = line / grid.x;
    int phase_row = tile.phase / phases().y;
    ivec2 pixel = ivec2(line - n * grid.x, position - line * grid.y) * stride;
    pixel += ivec2(phase_row, tile.phase - phase_row * phases().y);
    made = all(lessThan(pixel, c_image)) ? (n * c_image.x + pixel.x) * c_image.y + pixel.y : -1;
  }
#endif
  if (SUM_COLUMNS && row >= rows) made = row == row_of_ones() ? rows : -1;
#endif
  return made;
}

// The bias of a quad of columns.
vec4 column_bias(Tile tile, int column_quad) {
  return ADD_BIAS && column_quad < quads(columns) ? from_quad(edge[tile.edge_base + column_quad]) : vec4(0.0);
}

#ifdef ACROSS_LANES

// Stores four parts of rows of the tile: of each, the columns from a quad on, of which each invocation has one.
void store_parts(Tile tile, ivec4 tile_rows, ivec4 column_quads, vec4 v) {
  Parts parts;
  parts.columns = min(quads(columns) - column_quads, LANE_QUADS) * 4;
  parts.padded = greaterThanEqual(column_quads * 4 + result_lane, ivec4(columns));
  Parts apart = parts;
  [[unroll]] for (int e = 0; e < 4; e++) {
    int place = result_row(tile, tile_rows[e]);
    // Not computed where it is used: what a branch computes is not known to be the same for all invocations.
    int at = tile.c_base + place * c_pitch + column_quads[e];
    bool is_there = parts.columns[e] > 0 && tile_rows[e] < tile.row_end && place >= 0;
    bool is_apart = SUMS_APART && tile_rows[e] == row_of_ones();
    parts.at[e] = is_there && !is_apart ? at : -1;
    apart.at[e] = is_there && is_apart ? tile.edge_base + column_quads[e] : -1;
  }
  store(parts, v);
  if (SUMS_APART) {
    v = WITHOUT_PAD(v, apart);
    SET_NARROW_OF(1, edge, apart, v)
  }
}

// Stores a part of a row that is there, whole: the columns from a quad on, of which each invocation has one. Not called
// in a branch or loop.
void store_whole_part(Tile tile, int tile_row, int column_quad, float v) {
  Parts parts;
  parts.at = ivec4(tile.c_base + result_row(tile, tile_row) * c_pitch + column_quad);
  parts.columns = ivec4(LANES);
  parts.padded = bvec4(column_quad * 4 + result_lane >= columns);
  store(parts, vec4(v));
}

#else

// A quad of C that is stored: its row of A and its quad of columns; and where it lies in C, in quads, or -1 if it does
// not.
struct Stored {
  int row;
  int column_quad;
  int at;
};

Stored stored_quad(Tile tile, int row, int column_quad) {
  int place = result_row(tile, row);
  bool is_there = row < tile.row_end && place >= 0 && column_quad < quads(columns);
  return Stored(row, column_quad, is_there ? tile.c_base + place * c_pitch + column_quad : -1);
}

// Whether it is one of the sums that are stored apart.
bool is_apart(Stored quad) { return SUMS_APART && quad.row == row_of_ones(); }

// Whether it goes through the expression.
bool is_expressed(Stored quad) { return quad.at >= 0 && !is_apart(quad); }

// Stores a quad whose arguments were read.
void store_read(Tile tile, Stored quad, vec4 v) {
  stored_column_quad = quad.column_quad;
  if (is_expressed(quad)) store_result(uint(quad.at), evaluated(uint(quad.at), v));
  // Not an else: where no sums are stored, `edge` is another operand, and nothing may be left that writes it.
  if (is_apart(quad)) {
    int at = tile.edge_base + quad.column_quad;
    if (quad.at >= 0) edge[at] = to_quad_of(1, WITHOUT_PAD(v, at), at);
  }
}

// Stores columns 4 column_quad ... of a row, if there is such a quad.
void store_quad(Tile tile, int row, int column_quad, vec4 v) {
  Stored quad = stored_quad(tile, row, column_quad);
  if (is_expressed(quad)) read_arguments(uint(quad.at));
  store_read(tile, quad, v);
}

#endif

#endif
