// One tile of C per subgroup of 8, all in registers, where A's quads lie along its rows: each k adds the outer product
// of a few elements of A, which all invocations load from the same address, and of a row of B, whose columns the
// invocations share out: the first eight, then those after them. Such a tile is 8 rows by 16 columns, or 4 by 32 (TILE).
// This kernel is for drivers with Target::uniform_loads, as gemm_uniform.glsl is, but reads B where it is.
//
// Uniform loads are executed even if an invocation is inactive, so every address must be valid.
#ifndef HALFSTEP_GEMM_OUTER
#define HALFSTEP_GEMM_OUTER

#include "gemm/gemm_a.glsl"
#include "gemm/gemm_store.glsl"

layout(constant_id = 7) const int STEP = 1;      // quads of k per iteration; a divisor of the quads of a segment
layout(constant_id = 8) const int SEGMENTS = 1;  // per iteration: a divisor of a row's; 1 if STEP is not a whole one

#ifdef TILE_8x16
const int COLUMNS = 2;  // per invocation
#define SUMS vec2
#else
const int COLUMNS = 4;
#define SUMS vec4
#endif
const int LANES = 8;
const int ROWS = 16 / COLUMNS;
const int ROW_QUADS = ROWS / 4;

SUMS sums[ROWS];

int lane() { return int(gl_SubgroupInvocationID); }

// A tile has rows of one tap only; of a matrix, all rows are one.
int tap_quads() {
#ifdef OPERANDS_pixels_row
  return quads(channels);
#else
  return quads(rows);
#endif
}

int tap_tiles() { return (tap_quads() + ROW_QUADS - 1) / ROW_QUADS; }

// The first quad of rows of the tile, of which there are `count`. The row of ones has a tile of its own, the last.
int first_row_quad(int row_tile, out int count) {
  int tap = row_tile / tap_tiles();
  int quad = (row_tile - tap * tap_tiles()) * ROW_QUADS;
  count = min(tap_quads() - quad, ROW_QUADS);
  return tap * tap_quads() + quad;
}

ACursor a_at;
int a_quad_at[ROW_QUADS];  // from the first one's
int b_quad_at[COLUMNS];    // from the row's first one
Segment step_segment;      // the first of the iteration
int b_base;                // of the batch
int b_line;                // the segment's first row of B
bool of_ones;              // whether the tile is of the row of ones

bool is_inside(int k_place) {
#ifdef OPERANDS_pixels_row
  return k_place < k && a_is_inside(a_at, k_place);
#else
  return k_place < k;
#endif
}

void place_b(Tile tile) {
  [[unroll]] for (int j = 0; j < COLUMNS; j++) b_quad_at[j] = min(tile.column_quad + 2 * j, quads(columns) - 2);
}

// This invocation's element of eight contiguous ones: compiles to one vector load.
float of_lane(vec4 low, vec4 high) {
  float v = 0.0;
  [[unroll]] for (int e = 0; e < 4; e++) v = lane() == e ? low[e] : v;
  [[unroll]] for (int e = 0; e < 4; e++) v = lane() == 4 + e ? high[e] : v;
  return v;
}

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer EightAt { vec4 v[2]; };

SUMS b_of(int k_place, bool inside) {
  QuadAt row = b + (b_line + min(k_place, k - 1) * b_pitch);
  SUMS found;
  [[unroll]] for (int j = 0; j < COLUMNS; j++) {
    EightAt at = EightAt(row + b_quad_at[j]);
    found[j] = of_lane(at.v[0], at.v[1]);
  }
  return inside ? found : SUMS(0.0);
}

void add_products_of_a(int k_quad) {
  [[unroll]] for (int q = 0; q < STEP; q++) {
    [[unroll]] for (int kk = 0; kk < 4; kk++) {
      int k_place = (k_quad + q) * 4 + kk;
      SUMS columns_of_b = b_of(k_place, is_inside(k_place));
      QuadAt row = a + a_address(a_at, k_place);
      [[unroll]] for (int i = 0; i < ROW_QUADS; i++) {
        vec4 v = (row + a_quad_at[i]).v;
        [[unroll]] for (int e = 0; e < 4; e++) sums[i * 4 + e] = fma(SUMS(v[e]), columns_of_b, sums[i * 4 + e]);
      }
    }
  }
}

void add_ones(int k_quad) {
  [[unroll]] for (int kk = 0; kk < STEP * 4; kk++) {
    int k_place = k_quad * 4 + kk;
    sums[0] += b_of(k_place, k_place < k);
  }
}

void seek_one(Segment segment) {
  a_seek(a_at, segment);
  b_line = b_base + segment.index * k * b_pitch;
}

void seek(Segment segment) {
  step_segment = segment;
  seek_one(segment);
}

void add_products(int k_quad) {
  [[unroll]] for (int s = 0; s < SEGMENTS; s++) {
    if (s > 0) seek_one(segment_after(step_segment, s));
    if (of_ones) {
      add_ones(k_quad);
    } else {
      add_products_of_a(k_quad);
    }
  }
}


void end_sums() {}

const int MOST_QUADS = 0x7fffffff;
#include "gemm/gemm_segments.glsl"

// After which each invocation has quads of C: of four rows it has one, and of each eight columns one half.
vec4 result_quad(int i) {
  vec4 found = vec4(0.0);
  [[unroll]] for (int r = 0; r < 4; r++) {
    float v = sums[i / COLUMNS * 4 + r][i % COLUMNS];
    vec4 low = vec4(subgroupShuffle(v, 0), subgroupShuffle(v, 1), subgroupShuffle(v, 2), subgroupShuffle(v, 3));
    vec4 high = vec4(subgroupShuffle(v, 4), subgroupShuffle(v, 5), subgroupShuffle(v, 6), subgroupShuffle(v, 7));
    if (lane() % 4 == r) found = lane() < 4 ? low : high;
  }
  return found;
}

void main() {
  int tap_row_tiles = quads(rows) / tap_quads() * tap_tiles();
  Tile tile = tile_in(tap_row_tiles + (SUM_COLUMNS ? 1 : 0), COLUMNS * 2);
  int row_tile = tile.row;
  of_ones = SUM_COLUMNS && row_tile == tap_row_tiles;
  // Before the loop, which would otherwise make a variable of the lane's number.
  int result_row = lane() % 4;
  int result_quad_at = tile.column_quad + lane() / 4;
  int count = 1;
  int row_quad = of_ones ? quads(rows) : first_row_quad(row_tile, count);
  a_at = a_cursor(tile, of_ones ? 0 : row_quad);
  [[unroll]] for (int i = 0; i < ROW_QUADS; i++) a_quad_at[i] = min(i, count - 1);
  place_b(tile);
  [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = SUMS(0.0);
  b_base = tile.b_base;
  add_tile_products(tile);
  // Not unrolled, and a copy: see gemm_store.glsl.
  vec4 results[ROW_QUADS * COLUMNS];
  [[unroll]] for (int i = 0; i < ROW_QUADS * COLUMNS; i++) results[i] = result_quad(i);
  int i = 0;
  do {
    int quad = i / COLUMNS;
    if (quad < count) {
      store_quad(tile, (row_quad + quad) * 4 + result_row, result_quad_at + i % COLUMNS * 2, results[i]);
    }
    i++;
  } while (i < ROW_QUADS * COLUMNS);
}

#endif
