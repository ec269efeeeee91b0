// One tile of C per subgroup, all in registers, where A's quads lie along its rows: each k adds the outer product of a
// few elements of A, which all invocations load from the same address, and of a row of B, whose columns the LANES
// invocations share out: the first LANES, then those after them, COLUMNS times. This kernel is for drivers with
// Target::uniform_loads, as gemm_uniform.glsl is, but reads B where it is.
//
// Uniform loads are executed even if an invocation is inactive, so every address must be valid.
#ifndef HALFSTEP_GEMM_OUTER
#define HALFSTEP_GEMM_OUTER

layout(constant_id = 8) const int STEP = 1;      // quads of k that are added at a time; a divisor of those of a segment
layout(constant_id = 9) const int SEGMENTS = 0;  // see gemm_steps.glsl
layout(constant_id = 10) const int LANES = 8;     // of a subgroup: 8 or 16
layout(constant_id = 11) const int COLUMNS = 4;  // per invocation: 1, 2 or 4
layout(constant_id = 12) const int ROW_QUADS = 1;     // quads of rows of a tile
layout(constant_id = 13) const int ROWS_OF_QUAD = 4;  // that are not padding
layout(constant_id = 14) const bool ONE_TAP = true;   // a tile has rows of one tap; else there are padding channels
layout(constant_id = 15) const bool FULL = false;     // no tile has rows or columns past the last one
layout(constant_id = 16) const int LENGTH = 0;        // k that STEP quads have, where that is always as many; else 0
layout(constant_id = 17) const int IN_ROW = 0;        // see gemm_taps.glsl
#define HAS_IN_ROW
layout(constant_id = 18) const int A_APART = 1;  // quads from an element of A to that of the next k, and likewise of B
layout(constant_id = 19) const int B_APART = 1;
layout(constant_id = 20) const int MARGIN = 0;   // k at either end of a segment at which some tap may be outside

int lane() { return int(gl_SubgroupInvocationID); }

#include "gemm/gemm_a.glsl"
#define ACROSS_LANES
#include "gemm/gemm_store.glsl"

vec4 sums[ROW_QUADS * COLUMNS];  // of a quad of rows its COLUMNS, then the next quad's

// Of the first quad of the tile's rows, or of each.
const int CURSORS = ONE_TAP ? 1 : ROW_QUADS;
ACursor a_at[CURSORS];
int a_quad_at[ROW_QUADS];  // from the first one's
int b_quad_at[COLUMNS];  // from the first one's
int b_base;              // of the batch, and of the tile's columns
int b_line;              // the segment's first row of B

void place_b(Tile tile) {
  int last = quads(columns) - LANE_QUADS;
  int first = min(tile.column_quad, last);
  b_base = tile.b_base + first;
  [[unroll]] for (int j = 0; j < COLUMNS; j++) b_quad_at[j] = min(first + LANE_QUADS * j, last) - first;
}

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ElementAt { float v; };

ElementAt padding;  // a channel past the last one, which is 0

// This invocation's columns of a row of B; zeros if it is not inside.
void load_b(QuadAt row, bool inside, out float found[COLUMNS]) {
  [[unroll]] for (int j = 0; j < COLUMNS; j++) {
    float v = of_lane(LanesAt(row + (FULL ? LANE_QUADS * j : b_quad_at[j])));
    found[j] = inside ? v : 0.0;
  }
}

// All addresses of a step are constants from its first ones, so that no instructions are spent on them. Where there is
// no pixel, A's factor is zero, and B's too if all rows are one tap's; a whole line outside the image is left out.
void add_products(int k_quad) {
#ifdef OPERANDS_pixels_row
  if (ONE_TAP && a_at[0].width == 0) return;
#endif
  int k_place = k_quad * 4;
  QuadAt first_of_b = b + (b_line + k_place * B_APART);
  QuadAt first_of_a[CURSORS];
#ifdef OPERANDS_pixels_row
  int column[CURSORS];
  [[unroll]] for (int c = 0; c < CURSORS; c++) {
    column[c] = a_column(a_at[c], k_place);
    first_of_a[c] = a + (a_at[c].base + column[c] * a_pitch);
  }
#else
  [[unroll]] for (int c = 0; c < CURSORS; c++) first_of_a[c] = a + (a_at[c].base + k_place * A_APART);
#endif
  [[unroll]] for (int kk = 0; kk < (LENGTH > 0 ? LENGTH : STEP * 4); kk++) {
    bool is_there = LENGTH > 0 || k_place + kk < k;
    bool in_margin = LENGTH == 0 || kk < MARGIN || kk >= LENGTH - MARGIN;
    bool inside[CURSORS];
    QuadAt row[CURSORS];
    [[unroll]] for (int c = 0; c < CURSORS; c++) {
      inside[c] = is_there;
#ifdef OPERANDS_pixels_row
      uint width = uint(a_at[c].width);
      inside[c] = is_there && (in_margin ? uint(column[c] + kk * stride.y) < width : width > 0u);
#endif
      row[c] = first_of_a[c] + kk * A_APART;
      if (in_margin) row[c] = inside[c] ? row[c] : a + a_at[c].base;
    }
    float columns_of_b[COLUMNS];
    QuadAt row_of_b = first_of_b + kk * B_APART;
    if (LENGTH == 0) row_of_b = is_there ? row_of_b : b + b_line;
    load_b(row_of_b, ONE_TAP ? inside[0] : is_there, columns_of_b);
    [[unroll]] for (int i = 0; i < ROW_QUADS; i++) {
      QuadAt quad = ONE_TAP ? row[0] + (FULL ? i : a_quad_at[i]) : row[i];
      [[unroll]] for (int e = 0; e < ROWS_OF_QUAD; e++) {
        ElementAt at = ElementAt(quad) + e;
        if (!ONE_TAP) at = inside[i] ? at : padding;
        float of_a = at.v;
        if (ONE_TAP && in_margin) of_a = inside[0] ? of_a : 0.0;
        [[unroll]] for (int j = 0; j < COLUMNS; j++) {
          sums[i * COLUMNS + j][e] = fma(of_a, columns_of_b[j], sums[i * COLUMNS + j][e]);
        }
      }
    }
  }
}

void seek(Segment segment) {
  [[unroll]] for (int c = 0; c < CURSORS; c++) a_seek(a_at[c], segment);
  b_line = b_base + segment.index * k * b_pitch;
}

#include "gemm/gemm_steps.glsl"

// The row of ones: the sums of B's rows.
void add_ones(Tile tile) {
  int left = row_of_b(tile.k_end) - row_of_b(tile.k_begin);
  QuadAt row = b + (b_base + row_of_b(tile.k_begin) * b_pitch);
  do {
    [[unroll]] for (int e = 0; e < 4; e++) {
      float columns_of_b[COLUMNS];
      load_b(row + (e < left ? e * b_pitch : 0), e < left, columns_of_b);
      [[unroll]] for (int j = 0; j < COLUMNS; j++) sums[j][e] += columns_of_b[j];
    }
    row = row + 4 * b_pitch;
    left -= 4;
  } while (left > 0);
  [[unroll]] for (int j = 0; j < COLUMNS; j++) sums[j].x = dot(sums[j], vec4(1.0));
}

// Rows are in groups: those of a tap, or all of them. No tile has rows of two, and the row of ones has one of its own,
// the last.
int group_quads() {
#ifdef OPERANDS_pixels_row
  return ONE_TAP ? quads(channels) : quads(rows);
#else
  return quads(rows);
#endif
}

void main() {
  result_lane = lane();
  int group_tiles = (group_quads() + ROW_QUADS - 1) / ROW_QUADS;
  int tiles = quads(rows) / group_quads() * group_tiles;
  Tile tile = tile_in(tiles + (SUM_COLUMNS ? 1 : 0), COLUMNS * LANE_QUADS);
  int group = tile.row / group_tiles;
  int in_group = (tile.row - group * group_tiles) * ROW_QUADS;
  bool of_ones = SUM_COLUMNS && tile.row == tiles;
  int row_quad = of_ones ? quads(rows) : group * group_quads() + in_group;
  int count = of_ones ? 1 : group_quads() - in_group;
  padding = ElementAt(a + tile.a_base) + channels;
  [[unroll]] for (int i = 0; i < ROW_QUADS; i++) a_quad_at[i] = min(i, count - 1);
  place_b(tile);
  [[unroll]] for (int i = 0; i < ROW_QUADS * COLUMNS; i++) sums[i] = vec4(0.0);
  if (of_ones) {
    add_ones(tile);
  } else {
    [[unroll]] for (int c = 0; c < CURSORS; c++) a_at[c] = a_cursor(tile, row_quad + c);
    add_tile_products(tile);
  }
  const int sums_of_quad = ROWS_OF_QUAD * COLUMNS;
  [[unroll]] for (int first = 0; first < ROW_QUADS * sums_of_quad; first += 4) {
    ivec4 tile_rows = ivec4(tile.row_end);
    ivec4 column_quads = ivec4(tile.column_quad);
    vec4 v = vec4(0.0);
    [[unroll]] for (int e = 0; e < 4; e++) {
      int quad = (first + e) / sums_of_quad;
      int row = (first + e) / COLUMNS % ROWS_OF_QUAD;
      int column = (first + e) % COLUMNS;
      if (quad >= ROW_QUADS) continue;
      if (quad < count) tile_rows[e] = (row_quad + quad) * 4 + row;
      column_quads[e] += column * LANE_QUADS;
      v[e] = sums[quad * COLUMNS + column][row];
    }
    store_parts(tile, tile_rows, column_quads, v);
  }
}

#endif
