// One tile of C per subgroup, all in registers, for a C with few columns: each of its LANES invocations has its own
// ROWS rows and all eight columns of the tile. It loads its own rows of A, and part of B, which the others get from it
// by shuffles. Compared with gemm_subgroup.glsl, no lane idles if there are few columns, but each load of A is used
// less.
#ifndef HALFSTEP_GEMM_THIN
#define HALFSTEP_GEMM_THIN

#include "gemm/gemm_a.glsl"
#include "gemm/gemm_b.glsl"
#define SHUFFLES
#include "gemm/gemm_moments.glsl"

layout(constant_id = 8) const int ROWS = 16;  // per invocation; a multiple of four if A does not lie along k
layout(constant_id = 9) const int LANES = 8;  // of a subgroup: 8 or 16

int lane_zero;
#define LANE_ZERO lane_zero
#include "common/from_lane.glsl"

const int COLUMN_QUADS = 2;  // of the tile
const int B_LANES = 8;       // that have a part of B for four k; the others have it, too
const int ELEMENTS = QUAD_ELEMENTS;
// Quads of k that are summed before the sums are rounded, if they are; otherwise all of a segment.
const int MOST_QUADS = PARTIALS_IN_F16 ? 4 : 0x7fffffff;

vec4 sums[ROWS * COLUMN_QUADS];

int lane() {
  return int(gl_SubgroupInvocationID);
}

// Adjacent lanes have adjacent quads of A: four rows each, or one.
#ifdef A_ALONG_K
const int A_PLACES = ROWS;
int row_of(Tile tile, int i) {
  return tile.row + i * LANES + lane();
}
ACursor a_place(Tile tile, int i) {
  return a_cursor(tile, row_of(tile, i));
}
#else
const int A_PLACES = ROWS / 4;
int row_of(Tile tile, int i) {
  return tile.row + (i / 4 * LANES + lane()) * 4 + i % 4;
}
ACursor a_place(Tile tile, int i) {
  return a_cursor(tile, row_of(tile, i * 4) / 4);
}
#endif

ACursor a_at[A_PLACES];
vec4 a_quads[ROWS];  // this lane's rows of A for four k
BCursor b_at;
vec4 b_quad;  // this lane's part of B for them

void load_a(int k_quad) {
  [[unroll]] for (int i = 0; i < ROWS; i++) {
#ifdef A_ALONG_K
    a_quads[i] = a_load(a_at[i], k_quad);
#else
    a_quads[i] = a_load(a_at[i / 4], k_quad * 4 + i % 4);
#endif
  }
}

float a_of(int row, int kk) {
#ifdef A_ALONG_K
  return a_quads[row][kk];
#else
  return a_quads[row / 4 * 4 + kk][row % 4];
#endif
}

// A lane has four k of a column, or four columns of a k.
#ifdef B_ALONG_K
BCursor b_place(Tile tile) {
  return b_cursor(tile, tile.column_quad * 4 + lane() % B_LANES);
}
void load_b(int k_quad) {
  b_quad = b_load(b_at, k_quad);
}
float b_of(int kk, int column) {
  return from_lane(b_quad[kk], column);
}
#else
BCursor b_place(Tile tile) {
  return b_cursor(tile, tile.column_quad + lane() % COLUMN_QUADS);
}
void load_b(int k_quad) {
  b_quad = b_load(b_at, k_quad * 4 + lane() % B_LANES / COLUMN_QUADS);
}
float b_of(int kk, int column) {
  return from_lane(b_quad[column % 4], kk * COLUMN_QUADS + column / 4);
}
#endif

vec4 b_quad_of(int kk, int quad) {
  return vec4(b_of(kk, quad * 4), b_of(kk, quad * 4 + 1), b_of(kk, quad * 4 + 2), b_of(kk, quad * 4 + 3));
}

// Row by row, as in gemm_subgroup.glsl.
void add_products(int k_quad) {
  load_a(k_quad);
  load_b(k_quad);
  [[unroll]] for (int quad = 0; quad < COLUMN_QUADS; quad++) {
    vec4 b_values[4];
    [[unroll]] for (int kk = 0; kk < 4; kk++) b_values[kk] = b_quad_of(kk, quad);
    [[unroll]] for (int i = 0; i < ROWS; i++) {
      int at = i * COLUMN_QUADS + quad;
      [[unroll]] for (int kk = 0; kk < 4; kk++) {
        if (A_ELEMENT(kk, i) < ELEMENTS) sums[at] = fma(vec4(a_of(i, kk)), b_values[kk], sums[at]);
      }
    }
  }
}

void seek(Segment segment) {
  [[unroll]] for (int i = 0; i < A_PLACES; i++) a_seek(a_at[i], segment);
  b_seek(b_at, segment.index);
}

void end_sums() {
  if (!PARTIALS_IN_F16) return;
  [[unroll]] for (int i = 0; i < ROWS * COLUMN_QUADS; i++) sums[i] = rounded_to_half(sums[i]);
}

const int STEP = 1;
#include "gemm/gemm_lanes.glsl"
#include "gemm/gemm_segments.glsl"

void main() {
  lane_zero = min(groups, 0);
  Tile tile = workgroup_tile(ROWS * LANES, COLUMN_QUADS);
  [[unroll]] for (int i = 0; i < A_PLACES; i++) a_at[i] = a_place(tile, i);
  b_at = b_place(tile);
  start_sums(tile);
  add_tile_products(tile);
  store_sums(tile);
}

#endif
