// A tile of C for each subgroup, all in registers: ROWS rows, and four columns for each of its LANES invocations. Each
// loads its share of A, which the others then take from it lane by lane, and its own four columns of B. There is no
// shared memory and no barrier: this is the body for software drivers, where a load is dear and a shuffle is free.
#ifndef HALFSTEP_GEMM_SUBGROUP
#define HALFSTEP_GEMM_SUBGROUP

#include "common/gemm_a.glsl"
#include "common/gemm_b.glsl"
#include "common/gemm_store.glsl"

#if LANES == 4
// SwiftShader, where a broadcast costs less than a shuffle. Its lane must be a literal; the optimiser unrolls the loops
// that this is used in and keeps one branch.
float from_lane(float v, int lane) {
  if (lane == 0) return subgroupBroadcast(v, 0);
  if (lane == 1) return subgroupBroadcast(v, 1);
  if (lane == 2) return subgroupBroadcast(v, 2);
  return subgroupBroadcast(v, 3);
}
#define ROWS 8
#else
// lavapipe, where a shuffle from a constant lane takes half the time of a broadcast
float from_lane(float v, int lane) { return subgroupShuffle(v, lane); }
#define ROWS 32
#endif

const int A_LOADS = ROWS / LANES;  // quads of A that each lane loads for four k
const int ROW_QUADS = ROWS / 4;

// Quads of k that are added up before the sums are rounded, where they are; otherwise all of a segment.
const int MOST_QUADS = PARTIALS_IN_F16 ? 4 : 0x7fffffff;

// The tile's share of A for four k, spread over the lanes.
#ifdef A_ALONG_K
#define A_AT(row, kk) from_lane(a_quads[(row) / LANES][kk], (row) % LANES)
#else
#define A_PLACE(row, kk) ((kk) * ROW_QUADS + (row) / 4)
#define A_AT(row, kk) from_lane(a_quads[A_PLACE(row, kk) / LANES][(row) % 4], A_PLACE(row, kk) % LANES)
#endif

void main() {
  const int lane = int(gl_SubgroupInvocationID);
  Tile tile = workgroup_tile(ROWS, LANES);
  int column_quad = tile.column_quad + lane;

#ifdef A_ALONG_K
  ACursor a_at[A_LOADS];
  [[unroll]] for (int i = 0; i < A_LOADS; i++) a_at[i] = a_cursor(tile, tile.row + i * LANES + lane);
#else
  ACursor a_at = a_cursor(tile, tile.row / 4 + lane % ROW_QUADS);
#endif
#ifdef B_ALONG_K
  BCursor b_at[4];
  [[unroll]] for (int i = 0; i < 4; i++) b_at[i] = b_cursor(tile, column_quad * 4 + i);
#else
  BCursor b_at = b_cursor(tile, column_quad);
#endif

  vec4 sums[ROWS];
  vec4 start = column_bias(tile, column_quad);
  [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = start;

  const int segment_quads = quads(k);
  int done = tile.k_begin;
  do {
    int segment = done / segment_quads;
    int k_quad = done - segment * segment_quads;
    int k_stop = min(segment_quads, k_quad + min(tile.k_end - done, MOST_QUADS));
    done += k_stop - k_quad;
#ifdef A_ALONG_K
    [[unroll]] for (int i = 0; i < A_LOADS; i++) a_seek(a_at[i], segment);
#else
    a_seek(a_at, segment);
#endif
#ifdef B_ALONG_K
    [[unroll]] for (int i = 0; i < 4; i++) b_seek(b_at[i], segment);
#else
    b_seek(b_at, segment);
#endif
    do {
      vec4 a_quads[A_LOADS];
#ifdef A_ALONG_K
      [[unroll]] for (int i = 0; i < A_LOADS; i++) a_quads[i] = a_load(a_at[i], k_quad);
#else
      [[unroll]] for (int i = 0; i < A_LOADS; i++) {
        a_quads[i] = a_load(a_at, k_quad * 4 + i * LANES / ROW_QUADS + lane / ROW_QUADS);
      }
#endif
      vec4 b_quads[4];
#ifdef B_ALONG_K
      [[unroll]] for (int i = 0; i < 4; i++) b_quads[i] = b_load(b_at[i], k_quad);
      mat4 columns_of_b = transpose(mat4(b_quads[0], b_quads[1], b_quads[2], b_quads[3]));
      [[unroll]] for (int i = 0; i < 4; i++) b_quads[i] = columns_of_b[i];
#else
      [[unroll]] for (int i = 0; i < 4; i++) b_quads[i] = b_load(b_at, k_quad * 4 + i);
#endif
      [[unroll]] for (int kk = 0; kk < 4; kk++) {
        [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = fma(vec4(A_AT(i, kk)), b_quads[kk], sums[i]);
      }
      k_quad++;
    } while (k_quad < k_stop);
    if (PARTIALS_IN_F16) {
      [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = f16_partial(sums[i]);
    }
  } while (done < tile.k_end);

  [[unroll]] for (int i = 0; i < ROWS; i++) store_quad(tile, tile.row + i, column_quad, sums[i]);
}

#endif
