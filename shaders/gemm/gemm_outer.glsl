// One tile of C per subgroup, all in registers, where A's quads lie along its rows: each k adds the outer product of a
// few elements of A, which all invocations load from the same address, and of a row of B, whose columns the LANES
// invocations share out: the first LANES, then those after them, COLUMNS times. Such a tile has 16 / COLUMNS rows. This
// kernel is for drivers with Target::uniform_loads, as gemm_uniform.glsl is, but reads B where it is.
//
// Uniform loads are executed even if an invocation is inactive, so every address must be valid.
#ifndef HALFSTEP_GEMM_OUTER
#define HALFSTEP_GEMM_OUTER

#include "gemm/gemm_a.glsl"
#include "gemm/gemm_store.glsl"

layout(constant_id = 7) const int STEP = 1;      // quads of k per iteration; a divisor of the quads of a segment
layout(constant_id = 8) const int SEGMENTS = 1;  // per iteration: a divisor of a row's; 1 if STEP is not a whole one
layout(constant_id = 9) const int LANES = 8;     // of a subgroup: 8 or 16
layout(constant_id = 10) const int COLUMNS = 4;  // per invocation: 1, 2 or 4

#include "common/from_lane.glsl"

const int SUMS = 4;  // quads
const int ROW_QUADS = SUMS / COLUMNS;
const int LANE_QUADS = LANES / 4;  // of columns, one for each invocation

vec4 sums[SUMS];  // of a quad of rows its COLUMNS, then the next quad's

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
  [[unroll]] for (int j = 0; j < COLUMNS; j++) b_quad_at[j] = min(tile.column_quad + LANE_QUADS * j, quads(columns) - LANE_QUADS);
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
void load_b(int k_place, bool inside, out float found[COLUMNS]) {
  QuadAt row = b + (b_line + min(k_place, k - 1) * b_pitch);
  [[unroll]] for (int j = 0; j < COLUMNS; j++) {
    float v = of_lane(LanesAt(row + b_quad_at[j]));
    found[j] = inside ? v : 0.0;
  }
}

void add_products_of_a(int k_quad) {
  [[unroll]] for (int q = 0; q < STEP; q++) {
    [[unroll]] for (int kk = 0; kk < 4; kk++) {
      int k_place = (k_quad + q) * 4 + kk;
      float columns_of_b[COLUMNS];
      load_b(k_place, is_inside(k_place), columns_of_b);
      QuadAt row = a + a_address(a_at, k_place);
      [[unroll]] for (int i = 0; i < ROW_QUADS; i++) {
        vec4 v = (row + a_quad_at[i]).v;
        [[unroll]] for (int j = 0; j < COLUMNS; j++) {
          sums[i * COLUMNS + j] = fma(v, vec4(columns_of_b[j]), sums[i * COLUMNS + j]);
        }
      }
    }
  }
}

void add_ones(int k_quad) {
  [[unroll]] for (int kk = 0; kk < STEP * 4; kk++) {
    int k_place = k_quad * 4 + kk;
    float columns_of_b[COLUMNS];
    load_b(k_place, k_place < k, columns_of_b);
    [[unroll]] for (int j = 0; j < COLUMNS; j++) sums[j].x += columns_of_b[j];
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

// After which each invocation has quads of C: of four rows it has one, and of each LANES columns one quad. The lane's
// number is not compared as of_lane() does: the driver would keep those comparisons in memory, during the loop, too.
vec4 result_quad(int i) {
  vec4 found = vec4(0.0);
  [[unroll]] for (int r = 0; r < 4; r++) {
    float v = sums[i][r];
    [[unroll]] for (int l = 0; l < LANE_QUADS; l++) {
      vec4 quad;
      [[unroll]] for (int e = 0; e < 4; e++) quad[e] = from_lane(v, l * 4 + e);
      if (lane() % 4 == r && lane() / 4 == l) found = quad;
    }
  }
  return found;
}

void main() {
  int tap_row_tiles = quads(rows) / tap_quads() * tap_tiles();
  Tile tile = tile_in(tap_row_tiles + (SUM_COLUMNS ? 1 : 0), COLUMNS * LANE_QUADS);
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
  [[unroll]] for (int i = 0; i < SUMS; i++) sums[i] = vec4(0.0);
  b_base = tile.b_base;
  add_tile_products(tile);
  // Not unrolled, and a copy: see gemm_store.glsl.
  vec4 results[SUMS];
  [[unroll]] for (int i = 0; i < SUMS; i++) results[i] = result_quad(i);
  int i = 0;
  do {
    int quad = i / COLUMNS;
    if (quad < count) {
      store_quad(tile, (row_quad + quad) * 4 + result_row, result_quad_at + i % COLUMNS * LANE_QUADS, results[i]);
    }
    i++;
  } while (i < SUMS);
}

#endif
