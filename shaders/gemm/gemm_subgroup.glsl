// One tile of C per subgroup, all in registers: ROWS rows, and four columns for each of its LANES invocations. Each
// invocation loads part of A, which the others get from it by shuffles, and its own four columns of B. There is no
// shared memory and no barrier: this kernel is for software drivers, where loads are expensive and shuffles are free.
#ifndef HALFSTEP_GEMM_SUBGROUP
#define HALFSTEP_GEMM_SUBGROUP

#include "gemm/gemm_a.glsl"
#include "gemm/gemm_b.glsl"
#include "gemm/gemm_moments.glsl"

#ifdef BROADCASTS
const int LANES = 4;
const int COLUMN_LANES = LANES;
const int ROWS = 8;
// SwiftShader, which does not round sums to f16: even a branch that is never taken makes every segment cost it as much
// as 37 k.
const bool ROUNDS = false;
const int ELEMENTS = 4;  // for the same reason
#else
layout(constant_id = 8) const int LANES = 8;  // of a subgroup: 8 or 16
// Lanes that have the same rows, and columns of their own: all, or half of them where columns are few. The other half
// then has the next ROWS rows.
layout(constant_id = 9) const int COLUMN_LANES = 8;
const int ROWS = 32;
const bool ROUNDS = PARTIALS_IN_F16;
const int ELEMENTS = QUAD_ELEMENTS;
#endif
int lane_zero;
#define LANE_ZERO lane_zero
#include "common/from_lane.glsl"

const int A_LOADS = ROWS / COLUMN_LANES;  // quads of A that each lane loads per four k
const int ROW_QUADS = ROWS / 4;
#ifdef A_ALONG_K
const int A_PLACES = A_LOADS;
#else
const int A_PLACES = ROW_QUADS > COLUMN_LANES ? ROW_QUADS / COLUMN_LANES : 1;
#endif
// Quads of k that are summed before the sums are rounded, if they are; otherwise all of a segment.
const int MOST_QUADS = ROUNDS ? 4 : 0x7fffffff;

ACursor a_at[A_PLACES];
BCursor b_at[4];        // only the first is used if quads do not lie along k
vec4 a_quads[A_LOADS];  // the tile's part of A for four k, spread over the lanes
vec4 b_quads[4];        // B for the same k and this lane's columns
vec4 sums[ROWS];

int lane() { return int(gl_SubgroupInvocationID); }
int column_lane() { return lane() % COLUMN_LANES; }
int first_row(Tile tile) { return tile.row + lane() / COLUMN_LANES * ROWS; }

void seek_a(Segment segment) {
  [[unroll]] for (int i = 0; i < A_PLACES; i++) a_seek(a_at[i], segment);
}

#ifdef A_ALONG_K
void place_a(Tile tile) {
  [[unroll]] for (int i = 0; i < A_PLACES; i++) {
    a_at[i] = a_cursor(tile, first_row(tile) + i * COLUMN_LANES + column_lane());
  }
}
void load_a(int k_quad) {
  [[unroll]] for (int i = 0; i < A_LOADS; i++) a_quads[i] = a_load(a_at[i], k_quad);
}
float a_of(int row, int kk) { return from_lane(a_quads[row / COLUMN_LANES][kk], row % COLUMN_LANES); }
#else
void place_a(Tile tile) {
  [[unroll]] for (int i = 0; i < A_PLACES; i++) {
    a_at[i] = a_cursor(tile, first_row(tile) / 4 + (i * COLUMN_LANES + column_lane()) % ROW_QUADS);
  }
}
void load_a(int k_quad) {
  [[unroll]] for (int i = 0; i < A_LOADS; i++) {
    a_quads[i] = a_load(a_at[i % A_PLACES], k_quad * 4 + (i * COLUMN_LANES + column_lane()) / ROW_QUADS);
  }
}
float a_of(int row, int kk) {
  int place = kk * ROW_QUADS + row / 4;
  return from_lane(a_quads[place / COLUMN_LANES][row % 4], place % COLUMN_LANES);
}
#endif

#ifdef B_ALONG_K
void place_b(Tile tile, int column_quad) {
  [[unroll]] for (int i = 0; i < 4; i++) b_at[i] = b_cursor(tile, column_quad * 4 + i);
}
void seek_b(Segment segment) {
  [[unroll]] for (int i = 0; i < 4; i++) b_seek(b_at[i], segment.index);
}
void load_b(int k_quad) {
  mat4 columns_of_b;
  [[unroll]] for (int i = 0; i < 4; i++) columns_of_b[i] = b_load(b_at[i], k_quad);
  columns_of_b = transpose(columns_of_b);
  [[unroll]] for (int i = 0; i < 4; i++) b_quads[i] = columns_of_b[i];
}
#else
void place_b(Tile tile, int column_quad) { b_at[0] = b_cursor(tile, column_quad); }
void seek_b(Segment segment) { b_seek(b_at[0], segment.index); }
void load_b(int k_quad) {
  [[unroll]] for (int i = 0; i < 4; i++) b_quads[i] = b_load(b_at[0], k_quad * 4 + i);
}
#endif

// Row by row: there are more sums than registers, and each is loaded and stored once per four k.
void add_products(int k_quad) {
  load_a(k_quad);
  load_b(k_quad);
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    [[unroll]] for (int kk = 0; kk < 4; kk++) {
      if (A_ELEMENT(kk, i) < ELEMENTS) sums[i] = fma(vec4(a_of(i, kk)), b_quads[kk], sums[i]);
    }
  }
}

void seek(Segment segment) {
  seek_a(segment);
  seek_b(segment);
}

void end_sums() {
  if (!ROUNDS) return;
  [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = rounded_to_half(sums[i]);
}

const int STEP = 1;
#ifndef BROADCASTS
#define ONE_COPY true
#endif
#include "gemm/gemm_segments.glsl"

// SwiftShader is faster if this is not unrolled, and then from a copy: see gemm_store.glsl. For such a copy, lavapipe
// of Mesa 22 would load and store sums in pairs between the products, too.
void store_sums(Tile tile, int column_quad) {
  Moments moments = NO_MOMENTS;
#ifdef BROADCASTS
  vec4 results[ROWS];
  [[unroll]] for (int i = 0; i < ROWS; i++) results[i] = sums[i];
  int row = 0;
  do {
    store_quad(tile, first_row(tile) + row, column_quad, results[row]);
    include_row(moments, tile, first_row(tile) + row, results[row]);
    row++;
  } while (row < ROWS);
#else
  [[unroll]] for (int row = 0; row < ROWS; row++) {
    store_quad(tile, first_row(tile) + row, column_quad, sums[row]);
    include_row(moments, tile, first_row(tile) + row, sums[row]);
  }
#endif
  store_moments(first_row(tile) / ROWS, column_quad, moments);
}

void main() {
  lane_zero = min(groups, 0) + lane() - column_lane();
  Tile tile = workgroup_tile(LANES / COLUMN_LANES * ROWS, COLUMN_LANES);
  int column_quad = tile.column_quad + column_lane();
  place_a(tile);
  place_b(tile, column_quad);
  vec4 start = column_bias(tile, column_quad);
  [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = start;
  add_tile_products(tile);
  store_sums(tile, column_quad);
}

#endif
