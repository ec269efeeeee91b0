// One tile of C per subgroup, all in registers: COLUMNS columns of 24 / COLUMNS rows for each of its LANES invocations.
// All invocations load the same element of A, by address, which the driver executes as one load. B is packed into
// panels (gemm/gemm_panels.comp), so that the values that the invocations need at the same time are contiguous. Each
// product takes only a multiplication with a memory operand and an addition. This kernel is for drivers with
// Target::uniform_loads.
//
// Such loads are executed even if an invocation is inactive, so every address must be valid. Loops are do-while, of
// which lavapipe runs no extra round. Where there is no pixel, zeros that are stored before the panels are read.
#ifndef HALFSTEP_GEMM_UNIFORM
#define HALFSTEP_GEMM_UNIFORM

#include "gemm/gemm_a.glsl"
#define SHUFFLES
#include "gemm/gemm_moments.glsl"

layout(constant_id = 7) const int STEP = 1;     // quads of k per iteration; a divisor of the quads of a segment
layout(constant_id = 8) const int LANES = 8;    // of a subgroup: 8 or 16
layout(constant_id = 9) const int COLUMNS = 4;  // per invocation: 1, 2 or 4

// The sums, the columns of B and one element of A fill 32 registers; with a third more, sums would spill to memory.
const int SUMS = 24;
const int ROWS = SUMS / COLUMNS;
const int PANEL_QUADS = LANES * COLUMNS / 4;  // per k of a panel
const int MOST_STEP = 8;
const int BLOCK = 16;  // tiles in a block of rows

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer RowStep { vec4 v[MOST_STEP]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer PanelStep { vec4 v[]; };

float sums[SUMS];  // of a row its COLUMNS, then the next row's

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
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ElementAt { float v; };
ElementAt row_at[ROWS];  // addresses of the rows' first elements
bool ones_at[ROWS];      // whether it is the row of ones
int segment_start;       // from there to the segment's first element

#ifdef OPERANDS_planes_row
// Planes {n, channels, height, width}: a row of A is a (tap, channel), a segment of k is a line of positions.
int row_start(Tile tile, int row) {
  int padded = quads(channels) * 4;
  int tap = row / padded;
  int channel = row - tap * padded;
  int tap_row = tap / kernel_width;
  int line = channel * image.x + tap_row * tap_step.x;
  return line * a_pitch * 4 + (tap - tap_row * kernel_width) * tap_step.y;
}
void seek_a(Segment segment) {
  int line = segment.place.x * quads(channels) * 4 * image.x + segment.place.y * stride.x;
  segment_start = line * a_pitch * 4;
}
int k_pitch() { return stride.y; }
#else
// {k, rows}, of one segment
int row_start(Tile tile, int row) { return tile.a_base * 4 + row; }
void seek_a(Segment segment) { segment_start = 0; }
int k_pitch() { return a_pitch * 4; }
#endif

void place_a(Tile tile) {
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    row_at[i] = ElementAt(a) + row_start(tile, min(tile.row + i, rows - 1));
    ones_at[i] = SUM_COLUMNS && tile.row + i == row_of_ones();
  }
}
// k past the last read the last one again, and are multiplied by zeros of B.
float a_of(int i, int k_quad, int q, int kk) {
  int k_place = min((k_quad + q) * 4 + kk, k - 1);
  float v = (row_at[i] + (segment_start + k_place * k_pitch())).v;
  return ones_at[i] ? 1.0 : v;
}
#endif

// This invocation's element of LANES contiguous ones: compiles to one vector load.
float of_lane(PanelStep panel, int first) {
  float v = 0.0;
  [[unroll]] for (int q = 0; q < LANES / 4; q++) {
    vec4 quad = panel.v[first + q];
    [[unroll]] for (int e = 0; e < 4; e++) v = lane() == q * 4 + e ? quad[e] : v;
  }
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
      float columns_of_b[COLUMNS];
      [[unroll]] for (int j = 0; j < COLUMNS; j++) columns_of_b[j] = of_lane(panel, first + LANES / 4 * j);
      [[unroll]] for (int i = 0; i < ROWS; i++) {
        float of_a = a_of(i, k_quad, q, kk);
        [[unroll]] for (int j = 0; j < COLUMNS; j++) {
          sums[i * COLUMNS + j] = fma(of_a, columns_of_b[j], sums[i * COLUMNS + j]);
        }
      }
    }
  }
}

void end_sums() {}

const int SEGMENTS = 1;
const int MOST_QUADS = 0x7fffffff;
#include "gemm/gemm_segments.glsl"

// Tiles run in blocks of rows, and in a block those of the same columns one after the other: so a panel stays in a
// core's cache, and the block's part of A in the next one.
Tile panel_tile() {
  Tile tile = tile_in(row_tiles(ROWS), PANEL_QUADS);
  int columns_of_tiles = column_tiles(PANEL_QUADS);
  int at = tile.row * columns_of_tiles + tile.column_quad / PANEL_QUADS;
  int block = at / (BLOCK * columns_of_tiles);
  int in_block = at - block * BLOCK * columns_of_tiles;
  int block_rows = min(row_tiles(ROWS) - block * BLOCK, BLOCK);
  int column_tile = in_block / block_rows;
  place_rows(tile, block * BLOCK + in_block - column_tile * block_rows, ROWS);
  tile.column_quad = column_tile * PANEL_QUADS;
  return tile;
}

// Invocations that share a quad of columns, of which each assembles the quads of every SHARING-th row.
const int SHARING = 4 / COLUMNS;
const int RESULTS = SUMS / 4;

// Of two rows, of which this invocation and the one whose index differs in the bit `mask` have mask * COLUMNS adjacent
// columns each: all of those of the first row, or of the second one where that bit is set.
vec4 joined(vec4 first, vec4 second, int mask) {
  int width = mask * COLUMNS;
  bool is_first = (lane() & mask) == 0;
  vec4 kept = is_first ? first : second;
  vec4 given = is_first ? second : first;
  vec4 row = vec4(0.0);
  [[unroll]] for (int e = 0; e < width; e++) {
    float got = subgroupShuffleXor(given[e], mask);
    row[e] = is_first ? kept[e] : got;
    row[width + e] = is_first ? got : kept[e];
  }
  return row;
}

// This invocation's columns of a row of the tile.
vec4 own_columns(int row) {
  vec4 v = vec4(0.0);
  [[unroll]] for (int j = 0; j < COLUMNS; j++) v[j] = sums[row * COLUMNS + j];
  return v;
}

vec4 joined_rows(int row) { return joined(own_columns(row), own_columns(row + 1), 1); }

// The sums as quads of C, and their positions in the tile.
vec4 result_quad(int i) {
  if (SHARING == 1) return own_columns(i);
  if (SHARING == 2) return joined_rows(2 * i);
  return joined(joined_rows(4 * i), joined_rows(4 * i + 2), 2);
}
int row_of_result(int i) { return SHARING * i + lane() % SHARING; }
int column_of_results() { return lane() / SHARING; }

void store_tile_moments(Tile tile, int column_quad, Moments moments) {
  if (!FIND_MOMENTS) return;
  [[unroll]] for (uint mask = 1u; mask < SHARING; mask *= 2u) moments = merged_across(moments, mask);
  if (lane() % SHARING == 0) store_moments(tile.row / ROWS, column_quad, moments);
}

// This invocation's j-th column of the quad that it shares.
float own_column(vec4 quad, int j) {
  float v = 0.0;
  [[unroll]] for (int l = 0; l < SHARING; l++) v = lane() % SHARING == l ? quad[l * COLUMNS + j] : v;
  return v;
}

void main() {
  Tile tile = panel_tile();
  int column_quad = tile.column_quad + column_of_results();
  int zeros = quads(quads(k)) * 4;
  panel = zeros + tile.b_base + tile.column_quad * segments * quads(k) * 4;
  vec4 bias = column_bias(tile, column_quad);
  place_a(tile);
  [[unroll]] for (int i = 0; i < SUMS; i++) sums[i] = own_column(bias, i % COLUMNS);
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
