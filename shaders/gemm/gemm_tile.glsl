// One tile of C per workgroup: TILE by TILE. Each invocation has four or eight rows by four or eight columns. A and B
// go through shared memory, 16 k at a time. This kernel is for GPUs. It uses no subgroup operations, so it runs
// anywhere. With HALVES operands, products and sums are f16, in pairs: each 16 of k are summed by themselves and then
// added, so that sums stay near those that are rounded to f16 after 16 of k. With DOTS, f16 is multiplied as it is, 32
// k at a time (gemm_dots.glsl).
#ifndef HALFSTEP_GEMM_TILE
#define HALFSTEP_GEMM_TILE

#ifdef DOTS
#define K_QUADS 8
#else
#define K_QUADS 4
#endif
// ops/gemm/gemm_kernels.cpp has the same numbers of threads.
#if TILE == 128
#define THREADS 256
#define ROW_QUADS 2     // per invocation
#define COLUMN_QUADS 2
#elif TILE == 64
#define THREADS 128
#define ROW_QUADS 2
#define COLUMN_QUADS 1
#else
#define THREADS 64
#define ROW_QUADS 1
#define COLUMN_QUADS 1
#endif

#include "gemm/gemm_stage.glsl"
#include "gemm/gemm_moments.glsl"

#ifdef HALVES
#define NUMBERS f16vec4
#define UNROLL_K [[unroll]]
NUMBERS numbers(OPERAND bits) { return f16vec4(unpackFloat2x16(bits.x), unpackFloat2x16(bits.y)); }
#else
#define NUMBERS vec4
#define UNROLL_K
NUMBERS numbers(OPERAND v) { return from_quad(v); }
#endif

const int PITCH = TILE / 4 + 1;  // of shared memory; the extra quad avoids bank conflicts
const int ACROSS = TILE / 4 / COLUMN_QUADS;  // invocations per row of the tile
const int DOWN = TILE / 4 / ROW_QUADS;       // invocations per column of the tile

// The first quad of rows and that of columns of an invocation: 32 adjacent ones are 4 down and 8 across. Of two whose
// numbers differ in bit 0 alone the columns are the same, and in bit 1 alone the rows: NVIDIA's shared memory returns
// 128 bits to 32 invocations in half the time where all such pairs read the same address.
ivec2 first_quads(int index) {
  int block = index / 32;
  int lane = index % 32;
  return ivec2(block / (ACROSS / 8) * 4 + lane / 16 * 2 + lane % 2, block % (ACROSS / 8) * 8 + lane / 2 % 8);
}

NUMBERS sums[ROW_QUADS * 4][COLUMN_QUADS];

#ifdef DOTS
#include "gemm/gemm_dots.glsl"
#else
// [k][quad of rows or of columns]
shared NUMBERS shared_a[4 * K_QUADS * PITCH];
shared NUMBERS shared_b[4 * K_QUADS * PITCH];

void keep_step() {
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    ivec2 at_a = A_PLACE(i);
    ivec2 at_b = B_PLACE(i);
    NUMBERS a_kept = numbers(fetched_a(i));
    NUMBERS b_kept = numbers(fetched_b(i));
#ifdef A_ALONG_K
    [[unroll]] for (int e = 0; e < 4; e++) shared_a[(at_a.y * 4 + e) * PITCH + at_a.x / 4][at_a.x % 4] = a_kept[e];
#else
    shared_a[at_a.y * PITCH + at_a.x] = a_kept;
#endif
#ifdef B_ALONG_K
    [[unroll]] for (int e = 0; e < 4; e++) shared_b[(at_b.y * 4 + e) * PITCH + at_b.x / 4][at_b.x % 4] = b_kept[e];
#else
    shared_b[at_b.y * PITCH + at_b.x] = b_kept;
#endif
  }
}

// An invocation's quads of rows and of columns are interleaved, so that neighbours read adjacent shared memory.
void add_products(inout NUMBERS to[ROW_QUADS * 4][COLUMN_QUADS], int row_quad, int column_quad) {
  UNROLL_K for (int kk = 0; kk < 4 * K_QUADS; kk++) {
    NUMBERS b_part[COLUMN_QUADS];
    [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) b_part[j] = shared_b[kk * PITCH + column_quad + j * ACROSS];
    [[unroll]] for (int i = 0; i < ROW_QUADS; i++) {
      NUMBERS a_part = shared_a[kk * PITCH + row_quad + i * DOWN];
      [[unroll]] for (int e = 0; e < 4; e++) {
        [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) {
          to[i * 4 + e][j] = fma(NUMBERS(a_part[e]), b_part[j], to[i * 4 + e][j]);
        }
      }
    }
  }
}

// Adds the products of one step.
void add_step(int row_quad, int column_quad) {
#ifdef HALVES
  NUMBERS step[ROW_QUADS * 4][COLUMN_QUADS];
  [[unroll]] for (int i = 0; i < ROW_QUADS * 4; i++) {
    [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) step[i][j] = NUMBERS(0.0);
  }
  add_products(step, row_quad, column_quad);
  [[unroll]] for (int i = 0; i < ROW_QUADS * 4; i++) {
    [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) sums[i][j] += step[i][j];
  }
#else
  add_products(sums, row_quad, column_quad);
  if (!PARTIALS_IN_F16) return;
  [[unroll]] for (int i = 0; i < ROW_QUADS * 4; i++) {
    [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) sums[i][j] = rounded_to_half(sums[i][j]);
  }
#endif
}
#endif

#ifdef DOTS
#define TO_SHARED(v) floatBitsToUint(v)
#define FROM_SHARED(v) uintBitsToFloat(v)
#else
#define TO_SHARED(v) v
#define FROM_SHARED(v) v
#endif

#ifndef HALVES
// Invocations in one column exchange their moments through shared memory, which is no longer read.
void keep_moments(int row_quad, int column_quad, Moments moments) {
  shared_a[row_quad * (TILE / 4) + column_quad] = TO_SHARED(moments.mean);
  shared_b[row_quad * (TILE / 4) + column_quad] = TO_SHARED(moments.squares);
}
Moments kept_moments(Tile tile, int row_quad, int column_quad) {
  int rows_stored = 0;
  [[unroll]] for (int i = 0; i < ROW_QUADS; i++) {
    rows_stored += clamp(tile.row_end - tile.row - (row_quad + i * DOWN) * 4, 0, 4);
  }
  int at = row_quad * (TILE / 4) + column_quad;
  return Moments(float(rows_stored), FROM_SHARED(shared_a[at]), FROM_SHARED(shared_b[at]));
}
void store_kept_moments(Tile tile) {
  barrier();
  int column_quad = int(gl_LocalInvocationIndex);
  if (column_quad >= TILE / 4) return;
  Moments moments = NO_MOMENTS;
  for (int below = 0; below < DOWN; below++) moments = merged(moments, kept_moments(tile, below, column_quad));
  store_moments(tile.row / TILE, tile.column_quad + column_quad, moments);
}
#endif

void main() {
  Tile tile = workgroup_tile(TILE, TILE / 4);
  ivec2 first = first_quads(int(gl_LocalInvocationIndex));
  int row_quad = first.x;
  int column_quad = first.y;
  place_operands(tile);
  [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) {
    NUMBERS start = NUMBERS(column_bias(tile, tile.column_quad + column_quad + j * ACROSS));
    [[unroll]] for (int i = 0; i < ROW_QUADS * 4; i++) sums[i][j] = start;
  }
  fetch_step();
  keep_step();
  barrier();
  int k_quad = tile.k_begin;
  do {
    k_quad += K_QUADS;
    fetch_next(tile, k_quad < tile.k_end);
    add_step(row_quad, column_quad);
    barrier();
    keep_step();
    barrier();
  } while (k_quad < tile.k_end);

  // Not unrolled, and a copy: see gemm_store.glsl.
  vec4 results[ROW_QUADS * 4 * COLUMN_QUADS];
  [[unroll]] for (int i = 0; i < ROW_QUADS * 4; i++) {
    [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) results[i * COLUMN_QUADS + j] = vec4(sums[i][j]);
  }
  int j = 0;
  do {
    Moments moments = NO_MOMENTS;
    int i = 0;
    do {
      int row = tile.row + (row_quad + i / 4 * DOWN) * 4 + i % 4;
      vec4 v = results[i * COLUMN_QUADS + j];
      store_quad(tile, row, tile.column_quad + column_quad + j * ACROSS, v);
      include_row(moments, tile, row, v);
      i++;
    } while (i < ROW_QUADS * 4);
#ifndef HALVES
    if (FIND_MOMENTS) keep_moments(row_quad, column_quad + j * ACROSS, moments);
#endif
    j++;
  } while (j < COLUMN_QUADS);
#ifndef HALVES
  if (FIND_MOMENTS) store_kept_moments(tile);
#endif
}

#endif
