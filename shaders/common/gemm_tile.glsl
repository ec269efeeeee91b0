// A tile of C for each workgroup of 128 invocations: 64 rows by 64 columns, each invocation 8 by 4 of them. A and B come
// through shared memory, 16 k at a time. This is the body for GPUs; it asks nothing of subgroups, so it runs anywhere.
#ifndef HALFSTEP_GEMM_TILE
#define HALFSTEP_GEMM_TILE

#include "common/gemm_a.glsl"
#include "common/gemm_b.glsl"
#include "common/gemm_store.glsl"

const int TILE_QUADS = 16;      // quads of rows, and of columns, in the tile
const int K_QUADS = 4;          // quads of k taken at a time
const int PITCH = TILE_QUADS + 1;  // of shared memory; the odd quad spreads it over the banks
const int THREADS = 128;
const int LOADS = 2;            // quads of A, and of B, that each invocation loads at a time
const int ROWS = 8;             // rows of each invocation

// [k][quad of rows or of columns]
shared vec4 shared_a[4 * K_QUADS * PITCH];
shared vec4 shared_b[4 * K_QUADS * PITCH];

// Where the load-th quad of an invocation lies in the tile: for quads along k, {row or column, quad of k}; for others,
// {quad of rows or columns, k}.
ivec2 along_k(int load) {
  int i = int(gl_LocalInvocationIndex) + load * THREADS;
  return ivec2(i / K_QUADS, i % K_QUADS);
}
ivec2 across_k(int load) {
  int i = int(gl_LocalInvocationIndex) + load * THREADS;
  return ivec2(i % TILE_QUADS, i / TILE_QUADS);
}

// A quad of k counted through all segments, as {segment, quad in it}. Past the end of the part, the last one.
ivec2 k_place(Tile tile, int k_quad) {
  int at = min(k_quad, tile.k_end - 1);
  int segment = at / quads(k);
  return ivec2(segment, at - segment * quads(k));
}

vec4 load_a(Tile tile, inout ACursor cursor, int k_quad, int kk) {
  ivec2 place = k_place(tile, k_quad);
  a_seek(cursor, place.x);
#ifdef A_ALONG_K
  vec4 v = a_load(cursor, place.y);
#else
  vec4 v = a_load(cursor, place.y * 4 + kk);
#endif
  return k_quad < tile.k_end ? v : vec4(0.0);
}

vec4 load_b(Tile tile, inout BCursor cursor, int k_quad, int kk) {
  ivec2 place = k_place(tile, k_quad);
  b_seek(cursor, place.x);
#ifdef B_ALONG_K
  return b_load(cursor, place.y);
#else
  return b_load(cursor, place.y * 4 + kk);
#endif
}

void main() {
  Tile tile = workgroup_tile(TILE_QUADS * 4, TILE_QUADS);
  ACursor a_at[LOADS];
  BCursor b_at[LOADS];
  [[unroll]] for (int i = 0; i < LOADS; i++) {
#ifdef A_ALONG_K
    a_at[i] = a_cursor(tile, tile.row + along_k(i).x);
#else
    a_at[i] = a_cursor(tile, tile.row / 4 + across_k(i).x);
#endif
#ifdef B_ALONG_K
    b_at[i] = b_cursor(tile, tile.column_quad * 4 + along_k(i).x);
#else
    b_at[i] = b_cursor(tile, tile.column_quad + across_k(i).x);
#endif
  }

  int column = int(gl_LocalInvocationIndex) % TILE_QUADS;
  int row = int(gl_LocalInvocationIndex) / TILE_QUADS * ROWS;
  vec4 sums[ROWS];
  vec4 start = column_bias(tile, tile.column_quad + column);
  [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = start;

  int k_quad = tile.k_begin;
  do {
    [[unroll]] for (int i = 0; i < LOADS; i++) {
      ivec2 along = along_k(i);
      ivec2 across = across_k(i);
#ifdef A_ALONG_K
      vec4 av = load_a(tile, a_at[i], k_quad + along.y, 0);
      [[unroll]] for (int e = 0; e < 4; e++) shared_a[(along.y * 4 + e) * PITCH + along.x / 4][along.x % 4] = av[e];
#else
      shared_a[across.y * PITCH + across.x] = load_a(tile, a_at[i], k_quad + across.y / 4, across.y % 4);
#endif
#ifdef B_ALONG_K
      vec4 bv = load_b(tile, b_at[i], k_quad + along.y, 0);
      [[unroll]] for (int e = 0; e < 4; e++) shared_b[(along.y * 4 + e) * PITCH + along.x / 4][along.x % 4] = bv[e];
#else
      shared_b[across.y * PITCH + across.x] = load_b(tile, b_at[i], k_quad + across.y / 4, across.y % 4);
#endif
    }
    barrier();
    [[unroll]] for (int kk = 0; kk < 4 * K_QUADS; kk++) {
      vec4 low = shared_a[kk * PITCH + row / 4];
      vec4 high = shared_a[kk * PITCH + row / 4 + 1];
      vec4 bv = shared_b[kk * PITCH + column];
      [[unroll]] for (int i = 0; i < 4; i++) {
        sums[i] = fma(vec4(low[i]), bv, sums[i]);
        sums[i + 4] = fma(vec4(high[i]), bv, sums[i + 4]);
      }
    }
    barrier();
    if (PARTIALS_IN_F16) {
      [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = f16_partial(sums[i]);
    }
    k_quad += K_QUADS;
  } while (k_quad < tile.k_end);

  [[unroll]] for (int i = 0; i < ROWS; i++) {
    store_quad(tile, tile.row + row + i, tile.column_quad + column, sums[i]);
  }
}

#endif
