// Loads a workgroup's parts of A and B from memory into registers, K_QUADS quads of k at a time, for kernels that then
// copy them to shared memory: they fetch the next step while they compute with the current one. The kernel defines
// TILE, the rows and columns of its tile; K_QUADS; and THREADS, the invocations of its workgroup.
#ifndef HALFSTEP_GEMM_STAGE
#define HALFSTEP_GEMM_STAGE

#include "gemm/gemm_a.glsl"
#include "gemm/gemm_b.glsl"

const int LOADS = TILE * K_QUADS / THREADS;  // quads of A, and of B, per invocation and step

// The quad of the tile that an invocation loads: {row or column, quad of k} if quads lie along k, else {quad of rows or
// columns, k}. Adjacent invocations load adjacent quads; where the kernel defines TRANSPOSES, each invocation loads
// TRANSPOSED quads of consecutive k, for the same rows or columns, which it can then exchange.
ivec2 place_along_k(int load) {
  int i = int(gl_LocalInvocationIndex) + load * THREADS;
  return ivec2(i / K_QUADS, i % K_QUADS);
}
#ifdef TRANSPOSES
const int TRANSPOSED = LOADS < 4 ? LOADS : 4;
ivec2 place_across_k(int load) {
  const int blocks = K_QUADS * 4 / TRANSPOSED;
  int i = int(gl_LocalInvocationIndex) + load / TRANSPOSED * THREADS;
  return ivec2(i / blocks, i % blocks * TRANSPOSED + load % TRANSPOSED);
}
#else
ivec2 place_across_k(int load) {
  int i = int(gl_LocalInvocationIndex) + load * THREADS;
  return ivec2(i % (TILE / 4), i / (TILE / 4));
}
#endif
#ifdef A_ALONG_K
#define A_PLACE(load) place_along_k(load)
#else
#define A_PLACE(load) place_across_k(load)
#endif
#ifdef B_ALONG_K
#define B_PLACE(load) place_along_k(load)
#else
#define B_PLACE(load) place_across_k(load)
#endif

// A quad of k: its index over all segments, its segment, and its index in the segment.
struct KPlace {
  int all;
  int segment;
  int quad;
};

KPlace k_place(int all) {
  int segment = all / quads(k);
  return KPlace(all, segment, all - segment * quads(k));
}

// Avoids a division, which would be too slow for a step.
void k_advance(inout KPlace place, int by) {
  place.all += by;
  place.quad += by;
  while (place.quad >= quads(k)) {
    place.quad -= quads(k);
    place.segment++;
  }
}

ACursor a_at[LOADS];
BCursor b_at[LOADS];
int a_segment[LOADS];  // the segment of each cursor
int b_segment[LOADS];
OPERAND a_next[LOADS];
OPERAND b_next[LOADS];

void place_operands(Tile tile) {
  [[unroll]] for (int i = 0; i < LOADS; i++) {
#ifdef A_ALONG_K
    a_at[i] = a_cursor(tile, tile.row + A_PLACE(i).x);
#else
    a_at[i] = a_cursor(tile, tile.row / 4 + A_PLACE(i).x);
#endif
#ifdef B_ALONG_K
    b_at[i] = b_cursor(tile, tile.column_quad * 4 + B_PLACE(i).x);
#else
    b_at[i] = b_cursor(tile, tile.column_quad + B_PLACE(i).x);
#endif
    a_segment[i] = -1;
    b_segment[i] = -1;
  }
}

void fetch_a(Tile tile, KPlace start, int i) {
#ifdef A_ALONG_K
  int ahead = A_PLACE(i).y;
#else
  int ahead = A_PLACE(i).y / 4;
#endif
  bool inside = start.all + ahead < tile.k_end;
  k_advance(start, inside ? ahead : 0);
  if (start.segment != a_segment[i]) {
    a_seek(a_at[i], start.segment);
    a_segment[i] = start.segment;
  }
#ifdef A_ALONG_K
  OPERAND v = a_load(a_at[i], start.quad);
#else
  OPERAND v = a_load(a_at[i], start.quad * 4 + A_PLACE(i).y % 4);
#endif
  a_next[i] = inside ? v : OPERAND(0);
}

// Past the end of the part it reads the last quad again, which is multiplied by zeros of A.
void fetch_b(Tile tile, KPlace start, int i) {
#ifdef B_ALONG_K
  int ahead = B_PLACE(i).y;
#else
  int ahead = B_PLACE(i).y / 4;
#endif
  k_advance(start, start.all + ahead < tile.k_end ? ahead : 0);
  if (start.segment != b_segment[i]) {
    b_seek(b_at[i], start.segment);
    b_segment[i] = start.segment;
  }
#ifdef B_ALONG_K
  b_next[i] = b_load(b_at[i], start.quad);
#else
  b_next[i] = b_load(b_at[i], start.quad * 4 + B_PLACE(i).y % 4);
#endif
}

// Fetches the step that starts at `start`, if the part of k is long enough, and advances `start` to the next.
void fetch_step(Tile tile, inout KPlace start) {
  if (start.all >= tile.k_end) return;
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    fetch_a(tile, start, i);
    fetch_b(tile, start, i);
  }
  k_advance(start, K_QUADS);
}

#endif
