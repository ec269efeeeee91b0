// One tile of C per workgroup, computed by matrix units: TILE by TILE, divided into one square per subgroup, in
// fragments of a shape that the device reports. A and B go through shared memory as f16, 32 k at a time. Each row there
// is padded by 16 bytes to avoid bank conflicts. Accumulators are f32 or f16 (SUMS).
#ifndef HALFSTEP_GEMM_COOPERATIVE
#define HALFSTEP_GEMM_COOPERATIVE

#define OPERANDS_AS_BITS
#include "gemm/gemm.glsl"

layout(constant_id = 5) const int FRAGMENT_ROWS = 16;
layout(constant_id = 6) const int FRAGMENT_COLUMNS = 16;
layout(constant_id = 7) const int FRAGMENT_K = 16;

#define K_QUADS 8
const int THREADS = int(gl_WorkGroupSize.x);

#include "gemm/gemm_stage.glsl"
#define SHUFFLES
#include "gemm/gemm_moments.glsl"

// Subgroups along a side of the tile; must match ops/gemm/gemm_kernels.cpp.
const int SIDE = TILE == 32 ? 1 : 2;
const int SQUARE = TILE / SIDE;
const int DOWN = SQUARE / FRAGMENT_ROWS;        // fragments of a subgroup's square
const int ACROSS = SQUARE / FRAGMENT_COLUMNS;
const int FRAGMENT_QUADS = FRAGMENT_COLUMNS / 4;
const int PITCH_ALONG_K = K_QUADS + 2;  // quads
const int PITCH_ACROSS_K = TILE / 4 + 2;
const int LONGEST = max(TILE * PITCH_ALONG_K, K_QUADS * 4 * PITCH_ACROSS_K);

#ifdef SUMS_f16
#define SUM float16_t
#else
#define SUM float
#endif
#define FRAGMENT(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, use>

shared f16vec4 shared_a[LONGEST];
shared f16vec4 shared_b[LONGEST];
shared vec4 results[SIDE * SIDE * FRAGMENT_ROWS * FRAGMENT_QUADS];  // one fragment per subgroup

FRAGMENT(SUM, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator) sums[DOWN * ACROSS];

f16vec4 halves(uvec2 bits) { return f16vec4(unpackFloat2x16(bits.x), unpackFloat2x16(bits.y)); }

void keep_step() {
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    ivec2 at_a = A_PLACE(i);
    ivec2 at_b = B_PLACE(i);
#ifdef A_ALONG_K
    shared_a[at_a.x * PITCH_ALONG_K + at_a.y] = halves(a_next[i]);
#else
    shared_a[at_a.y * PITCH_ACROSS_K + at_a.x] = halves(a_next[i]);
#endif
#ifdef B_ALONG_K
    shared_b[at_b.x * PITCH_ALONG_K + at_b.y] = halves(b_next[i]);
#else
    shared_b[at_b.y * PITCH_ACROSS_K + at_b.x] = halves(b_next[i]);
#endif
  }
}

// Loads the fragment of A at a row and k of the tile and step; load_fragment_b, that of B at a k and column.
void load_fragment_a(out FRAGMENT(float16_t, FRAGMENT_ROWS, FRAGMENT_K, gl_MatrixUseA) fragment, int row, int kk) {
#ifdef A_ALONG_K
  coopMatLoad(fragment, shared_a, row * PITCH_ALONG_K + kk / 4, PITCH_ALONG_K, gl_CooperativeMatrixLayoutRowMajor);
#else
  coopMatLoad(fragment, shared_a, kk * PITCH_ACROSS_K + row / 4, PITCH_ACROSS_K,
              gl_CooperativeMatrixLayoutColumnMajor);
#endif
}
void load_fragment_b(out FRAGMENT(float16_t, FRAGMENT_K, FRAGMENT_COLUMNS, gl_MatrixUseB) fragment, int kk,
                     int column) {
#ifdef B_ALONG_K
  coopMatLoad(fragment, shared_b, column * PITCH_ALONG_K + kk / 4, PITCH_ALONG_K,
              gl_CooperativeMatrixLayoutColumnMajor);
#else
  coopMatLoad(fragment, shared_b, kk * PITCH_ACROSS_K + column / 4, PITCH_ACROSS_K,
              gl_CooperativeMatrixLayoutRowMajor);
#endif
}

void add_products(ivec2 corner) {
  for (int kk = 0; kk < K_QUADS * 4; kk += FRAGMENT_K) {
    FRAGMENT(float16_t, FRAGMENT_ROWS, FRAGMENT_K, gl_MatrixUseA) a_part[DOWN];
    [[unroll]] for (int i = 0; i < DOWN; i++) load_fragment_a(a_part[i], corner.x + i * FRAGMENT_ROWS, kk);
    [[unroll]] for (int j = 0; j < ACROSS; j++) {
      FRAGMENT(float16_t, FRAGMENT_K, FRAGMENT_COLUMNS, gl_MatrixUseB) b_part;
      load_fragment_b(b_part, kk, corner.y + j * FRAGMENT_COLUMNS);
      [[unroll]] for (int i = 0; i < DOWN; i++) {
        sums[i * ACROSS + j] = coopMatMulAdd(a_part[i], b_part, sums[i * ACROSS + j]);
      }
    }
  }
}

// The driver decides which elements of a fragment an invocation holds, so each fragment goes through shared memory.
void store_fragment(Tile tile, FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator) fragment,
                    ivec2 corner, inout Moments moments) {
  int base = int(gl_SubgroupID) * FRAGMENT_ROWS * FRAGMENT_QUADS;
  coopMatStore(fragment, results, base, FRAGMENT_QUADS, gl_CooperativeMatrixLayoutRowMajor);
  subgroupBarrier();
  for (int i = int(gl_SubgroupInvocationID); i < FRAGMENT_ROWS * FRAGMENT_QUADS; i += int(gl_SubgroupSize)) {
    int row = tile.row + corner.x + i / FRAGMENT_QUADS;
    int column_quad = tile.column_quad + corner.y / 4 + i % FRAGMENT_QUADS;
    vec4 v = results[base + i] + column_bias(tile, column_quad);
    store_quad(tile, row, column_quad, v);
    include_row(moments, tile, row, v);
  }
  subgroupBarrier();
}

// Stores the moments of a square's columns: every FRAGMENT_QUADS-th lane has the same columns.
void store_square_moments(Tile tile, ivec2 corner, Moments moments) {
  for (uint mask = uint(FRAGMENT_QUADS); mask < gl_SubgroupSize; mask *= 2u) moments = merged_across(moments, mask);
  int quad = int(gl_SubgroupInvocationID);
  if (quad < FRAGMENT_QUADS) {
    store_moments((tile.row + corner.x) / SQUARE, tile.column_quad + corner.y / 4 + quad, moments);
  }
}

void main() {
  Tile tile = workgroup_tile(TILE, TILE / 4);
  ivec2 corner = ivec2(gl_SubgroupID / SIDE, gl_SubgroupID % SIDE) * SQUARE;
  place_operands(tile);
  [[unroll]] for (int i = 0; i < DOWN * ACROSS; i++) {
    sums[i] = FRAGMENT(SUM, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator)(0.0);
  }
  KPlace next = k_place(tile.k_begin);
  fetch_step(tile, next);
  int k_quad = tile.k_begin;
  do {
    keep_step();
    barrier();
    fetch_step(tile, next);
    add_products(corner);
    barrier();
    k_quad += K_QUADS;
  } while (k_quad < tile.k_end);
  [[unroll]] for (int j = 0; j < ACROSS; j++) {
    Moments moments = NO_MOMENTS;
    [[unroll]] for (int i = 0; i < DOWN; i++) {
      store_fragment(tile,
                     FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator)(sums[i * ACROSS + j]),
                     corner + ivec2(i * FRAGMENT_ROWS, j * FRAGMENT_COLUMNS), moments);
    }
    if (FIND_MOMENTS) store_square_moments(tile, corner + ivec2(0, j * FRAGMENT_COLUMNS), moments);
  }
}

#endif
