// One tile of C per subgroup, all in registers, where A's quads lie along its rows: each k adds the outer product of a
// few elements of A, which all invocations load from the same address, and of a row of B, whose columns the LANES
// invocations share out: the first LANES, then those after them, COLUMNS times. Such a tile has 16 / COLUMNS rows. This
// kernel is for drivers with Target::uniform_loads, as gemm_uniform.glsl is, but reads B where it is.
//
// Uniform loads are executed even if an invocation is inactive, so every address must be valid.
#ifndef HALFSTEP_GEMM_OUTER
#define HALFSTEP_GEMM_OUTER

layout(constant_id = 7) const int STEP = 1;      // quads of k that are added at a time; a divisor of those of a segment
layout(constant_id = 8) const int SEGMENTS = 0;  // see gemm_segments.glsl
layout(constant_id = 9) const int LANES = 8;     // of a subgroup: 8 or 16
layout(constant_id = 10) const int COLUMNS = 4;  // per invocation: 1, 2 or 4
layout(constant_id = 11) const bool EVEN = false;  // no tile has rows or columns, and no quad has k, past the last one

int lane() { return int(gl_SubgroupInvocationID); }

#include "gemm/gemm_a.glsl"
#define ACROSS_LANES
#include "gemm/gemm_store.glsl"

const int SUMS = 4;  // quads
const int ROW_QUADS = SUMS / COLUMNS;
vec4 sums[SUMS];  // of a quad of rows its COLUMNS, then the next quad's

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
int b_quad_at[COLUMNS];    // from the first one's
int b_base;                // of the batch, and of the tile's columns
int b_line;                // the segment's first row of B
bool of_ones;              // whether the tile is of the row of ones

void place_b(Tile tile) {
  int last = quads(columns) - LANE_QUADS;
  int first = min(tile.column_quad, last);
  b_base = tile.b_base + first;
  [[unroll]] for (int j = 0; j < COLUMNS; j++) b_quad_at[j] = min(first + LANE_QUADS * j, last) - first;
}

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer LanesAt { vec4 v[4]; };

// This invocation's element of LANES contiguous ones: compiles to one vector load.
float of_lane(LanesAt at) {
  vec4 quads_at[LANE_QUADS];
  [[unroll]] for (int q = 0; q < LANE_QUADS; q++) quads_at[q] = at.v[q];
  float v = 0.0;
  [[unroll]] for (int l = 0; l < LANES; l++) v = lane() == l ? quads_at[l / 4][l % 4] : v;
  return v;
}

// This invocation's columns of a row of B; zeros if it is not inside.
void load_b(QuadAt row, bool inside, out float found[COLUMNS]) {
  [[unroll]] for (int j = 0; j < COLUMNS; j++) {
    float v = of_lane(LanesAt(row + (EVEN ? LANE_QUADS * j : b_quad_at[j])));
    found[j] = inside ? v : 0.0;
  }
}

// From one k to the next, addresses are added to, not multiplied.
void add_products_of_a(int k_quad) {
  int k_place = k_quad * 4;
#ifdef OPERANDS_pixels_row
  int column = a_column(a_at, k_place);
  int a_row = a_at.base + column * a_pitch;
  int a_apart = stride.y * a_pitch;
#else
  int a_row = a_at.base + k_place * a_pitch;
  int a_apart = a_pitch;
#endif
  int b_row = b_line + k_place * b_pitch;
  [[unroll]] for (int kk = 0; kk < STEP * 4; kk++) {
    bool inside = EVEN || k_place + kk < k;
    int b_at = inside ? b_row : b_line;
#ifdef OPERANDS_pixels_row
    inside = inside && uint(column) < uint(a_at.width);
    column += stride.y;
#endif
    float columns_of_b[COLUMNS];
    load_b(b + b_at, inside, columns_of_b);
    QuadAt row = a + (inside ? a_row : a_at.base);
    a_row += a_apart;
    b_row += b_pitch;
    [[unroll]] for (int i = 0; i < ROW_QUADS; i++) {
      vec4 v = (row + (EVEN ? i : a_quad_at[i])).v;
      [[unroll]] for (int j = 0; j < COLUMNS; j++) {
        sums[i * COLUMNS + j] = fma(v, vec4(columns_of_b[j]), sums[i * COLUMNS + j]);
      }
    }
  }
}

void add_ones(int k_quad) {
  [[unroll]] for (int kk = 0; kk < STEP * 4; kk++) {
    int k_place = k_quad * 4 + kk;
    float columns_of_b[COLUMNS];
    load_b(b + (b_line + min(k_place, k - 1) * b_pitch), k_place < k, columns_of_b);
    [[unroll]] for (int j = 0; j < COLUMNS; j++) sums[j].x += columns_of_b[j];
  }
}

void seek(Segment segment) {
  a_seek(a_at, segment);
  b_line = b_base + segment.index * k * b_pitch;
}

void add_products(int k_quad) {
  if (of_ones) {
    add_ones(k_quad);
  } else {
    add_products_of_a(k_quad);
  }
}

void end_sums() {}

const int MOST_QUADS = 0x7fffffff;
#include "gemm/gemm_segments.glsl"

void main() {
  result_lane = lane();
  int tap_row_tiles = quads(rows) / tap_quads() * tap_tiles();
  Tile tile = tile_in(tap_row_tiles + (SUM_COLUMNS ? 1 : 0), COLUMNS * LANE_QUADS);
  int row_tile = tile.row;
  of_ones = SUM_COLUMNS && row_tile == tap_row_tiles;
  int count = 1;
  int row_quad = of_ones ? quads(rows) : first_row_quad(row_tile, count);
  a_at = a_cursor(tile, of_ones ? 0 : row_quad);
  [[unroll]] for (int i = 0; i < ROW_QUADS; i++) a_quad_at[i] = min(i, count - 1);
  place_b(tile);
  [[unroll]] for (int i = 0; i < SUMS; i++) sums[i] = vec4(0.0);
  add_tile_products(tile);
  [[unroll]] for (int i = 0; i < SUMS; i++) {
    int quad = i / COLUMNS;
    int first = quad < count ? (row_quad + quad) * 4 : tile.row_end;
    store_rows(tile, ivec4(first, first + 1, first + 2, first + 3), tile.column_quad + i % COLUMNS * LANE_QUADS, sums[i]);
  }
}

#endif
