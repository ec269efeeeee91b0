// One tile of C per subgroup of 8, all in registers: 6 rows by 32 columns, four per invocation, or 12 by 16 if C has
// few columns (TILE). All invocations load the same element of A, by address, which the driver executes as one load. B
// is packed into panels (gemm/gemm_panels.comp), so that the values that the eight invocations need at the same time
// are contiguous. Each product takes only a multiplication with a memory operand and an addition. This kernel is for
// drivers with Target::uniform_loads.
//
// Such loads are executed even if an invocation is inactive, so every address must be valid. Loops are do-while, of
// which lavapipe runs no extra round. Where there is no pixel, zeros that are stored before the panels are read.
#ifndef HALFSTEP_GEMM_UNIFORM
#define HALFSTEP_GEMM_UNIFORM

#include "gemm/gemm_a.glsl"
#define SHUFFLES
#include "gemm/gemm_moments.glsl"

layout(constant_id = 7) const int STEP = 1;  // quads of k per iteration; a divisor of the quads of a segment

// Their accumulators, the columns of B and one element of A fill 32 registers; with eight rows by 32 columns,
// accumulators would spill to memory.
#ifdef TILE_12x16
#define COLUMNS 2  // per invocation
#define SUMS vec2
#else
#define COLUMNS 4
#define SUMS vec4
#endif
const int ROWS = 24 / COLUMNS;
const int LANES = 8;
const int PANEL_QUADS = LANES * COLUMNS / 4;  // per k of a panel
const int MOST_STEP = 8;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer RowStep { vec4 v[MOST_STEP]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer PanelStep {
  vec4 v[MOST_STEP * 4 * PANEL_QUADS];
};

SUMS sums[ROWS];

int lane() { return int(gl_SubgroupInvocationID); }

#ifdef A_ALONG_K
ACursor a_at[ROWS];
QuadAt row_at[ROWS];  // addresses of the segment's elements of A

void place_a(Tile tile) {
  [[unroll]] for (int i = 0; i < ROWS; i++) a_at[i] = a_cursor(tile, tile.row + i);
}
void seek_a(Segment segment) {
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    a_seek(a_at[i], segment);
    row_at[i] = a + a_at[i].base;
#ifdef OPERANDS_patches_row
    if (!a_at[i].inside) row_at[i] = b;
#endif
  }
}
float a_of(int i, int k_quad, int q, int kk) { return RowStep(row_at[i] + k_quad).v[q][kk]; }
#else
// {k, rows}, of one segment
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ElementAt { float v; };
ElementAt row_at[ROWS];  // addresses of the rows' first elements
bool ones_at[ROWS];      // whether it is the row of ones

void place_a(Tile tile) {
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    row_at[i] = ElementAt(a) + (tile.a_base * 4 + min(tile.row + i, rows - 1));
    ones_at[i] = SUM_COLUMNS && tile.row + i == row_of_ones();
  }
}
void seek_a(Segment segment) {}
// k past the last read the last one again, and are multiplied by zeros of B.
float a_of(int i, int k_quad, int q, int kk) {
  int k_place = min((k_quad + q) * 4 + kk, k - 1);
  float v = (row_at[i] + k_place * a_pitch * 4).v;
  return ones_at[i] ? 1.0 : v;
}
#endif

// This invocation's element of eight contiguous ones: compiles to one vector load.
float of_lane(vec4 low, vec4 high) {
  float v = 0.0;
  [[unroll]] for (int e = 0; e < 4; e++) v = lane() == e ? low[e] : v;
  [[unroll]] for (int e = 0; e < 4; e++) v = lane() == 4 + e ? high[e] : v;
  return v;
}

int panel;          // where the tile's begins
int panel_segment;  // where the segment's part of it does

void seek(Segment segment) {
  seek_a(segment);
  panel_segment = panel + segment.index * quads(k) * 4 * PANEL_QUADS;
}

void add_products(int k_quad) {
  PanelStep panel = PanelStep(b + (panel_segment + k_quad * 4 * PANEL_QUADS));
  [[unroll]] for (int q = 0; q < STEP; q++) {
    [[unroll]] for (int kk = 0; kk < 4; kk++) {
      int first = (q * 4 + kk) * PANEL_QUADS;
      SUMS columns_of_b;
      [[unroll]] for (int j = 0; j < COLUMNS; j++) {
        columns_of_b[j] = of_lane(panel.v[first + 2 * j], panel.v[first + 2 * j + 1]);
      }
      [[unroll]] for (int i = 0; i < ROWS; i++) {
        sums[i] = fma(SUMS(a_of(i, k_quad, q, kk)), columns_of_b, sums[i]);
      }
    }
  }
}

void end_sums() {}

const int SEGMENTS = 1;
const int MOST_QUADS = 0x7fffffff;
#include "gemm/gemm_segments.glsl"

// Tiles of the same columns run one after the other: their panel stays in the cache. A tile needs less of A than of B.
Tile panel_tile() {
  Tile tile = tile_in(row_tiles(ROWS), PANEL_QUADS);
  int at = tile.row * column_tiles(PANEL_QUADS) + tile.column_quad / PANEL_QUADS;
  int column_tile = at / row_tiles(ROWS);
  place_rows(tile, at - column_tile * row_tiles(ROWS), ROWS);
  tile.column_quad = column_tile * PANEL_QUADS;
  return tile;
}

// The sums as quads of C, and their positions in the tile.
const int RESULTS = 6;
#ifdef TILE_12x16
// Two invocations share a quad of columns: each assembles the quads of half of the rows.
vec4 result_quad(int i) {
  bool even = lane() % 2 == 0;
  vec2 kept = even ? sums[2 * i] : sums[2 * i + 1];
  vec2 given = even ? sums[2 * i + 1] : sums[2 * i];
  vec2 got = vec2(subgroupShuffleXor(given.x, 1), subgroupShuffleXor(given.y, 1));
  return even ? vec4(kept, got) : vec4(got, kept);
}
int row_of_result(int i) { return 2 * i + lane() % 2; }
void store_tile_moments(Tile tile, int column_quad, Moments moments) {
  if (!FIND_MOMENTS) return;
  moments = merged_across(moments, 1u);
  if (lane() % 2 == 0) store_moments(tile.row / ROWS, column_quad, moments);
}
int column_of_results() { return lane() / 2; }
SUMS first_sum(vec4 bias) { return lane() % 2 == 0 ? bias.xy : bias.zw; }
#else
vec4 result_quad(int i) { return sums[i]; }
int row_of_result(int i) { return i; }
void store_tile_moments(Tile tile, int column_quad, Moments moments) {
  store_moments(tile.row / ROWS, column_quad, moments);
}
int column_of_results() { return lane(); }
SUMS first_sum(vec4 bias) { return bias; }
#endif

void main() {
  Tile tile = panel_tile();
  int column_quad = tile.column_quad + column_of_results();
  int zeros = quads(quads(k)) * 4;
  panel = zeros + tile.b_base + tile.column_quad * segments * quads(k) * 4;
  SUMS start = first_sum(column_bias(tile, column_quad));
  place_a(tile);
  [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = start;
  add_tile_products(tile);
  // Not unrolled, and a copy: see gemm_store.glsl.
  vec4 results[RESULTS];
  [[unroll]] for (int i = 0; i < RESULTS; i++) results[i] = result_quad(i);
  Moments moments = NO_MOMENTS;
  int i = 0;
  do {
    int row = tile.row + row_of_result(i);
    store_quad(tile, row, column_quad, results[i]);
    include_row(moments, tile, row, results[i]);
    i++;
  } while (i < RESULTS);
  store_tile_moments(tile, column_quad, moments);
}

#endif
