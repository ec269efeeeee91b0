// One tile of C per workgroup, computed by matrix units: TILE by TILE, divided into one square per subgroup, in
// fragments of a shape that the device reports. A and B go through shared memory as f16, 32 k at a time: rows of A and
// columns of B, each along k, as matrix units read them with the fewest loads. Each is padded by 16 bytes to avoid bank
// conflicts. With two BUFFERS the next step is kept while others still multiply, so a step has one barrier, not two.
// Accumulators are f32 or f16 (SUMS).
#ifndef HALFSTEP_GEMM_COOPERATIVE
#define HALFSTEP_GEMM_COOPERATIVE

#define K_QUADS 8
#define THREADS int(gl_WorkGroupSize.x)
#define TRANSPOSES
#include "gemm/gemm_stage.glsl"
#define SHUFFLES
#include "gemm/gemm_moments.glsl"

layout(constant_id = 7) const int FRAGMENT_ROWS = 16;
layout(constant_id = 8) const int FRAGMENT_COLUMNS = 16;
layout(constant_id = 9) const int FRAGMENT_K = 16;
layout(constant_id = 10) const int BUFFERS = 1;

// Subgroups along a side of the tile; must match ops/gemm/gemm_kernels.cpp.
const int SIDE = TILE == 32 ? 1 : 2;
const int SQUARE = TILE / SIDE;
const int DOWN = SQUARE / FRAGMENT_ROWS;        // fragments of a subgroup's square
const int ACROSS = SQUARE / FRAGMENT_COLUMNS;
const int FRAGMENT_QUADS = FRAGMENT_COLUMNS / 4;
const int PITCH = K_QUADS + 2;  // quads

#ifdef SUMS_f16
#define SUM float16_t
#else
#define SUM float
#endif
#define FRAGMENT(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, use>

const int KEPT_A = 0;
const int KEPT_B = TILE * PITCH;
const int BUFFER_QUADS = 2 * TILE * PITCH;
shared f16vec4 kept[BUFFERS * BUFFER_QUADS];
shared vec4 results[SIDE * SIDE * FRAGMENT_ROWS * FRAGMENT_QUADS];  // one fragment per subgroup

FRAGMENT(SUM, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator) sums[DOWN * ACROSS];

f16vec4 halves(uvec2 bits) { return f16vec4(unpackFloat2x16(bits.x), unpackFloat2x16(bits.y)); }

void keep_along_k(int from, ivec2 at, OPERAND bits) { kept[from + at.x * PITCH + at.y] = halves(bits); }

// Keeps TRANSPOSED quads across k, the first of which is at a place, as four quads along k or parts of such.
void keep_across_k(int from, ivec2 at, f16vec4 block[4]) {
  [[unroll]] for (int side = 0; side < 4; side++) {
    f16vec4 along_k = f16vec4(block[0][side], block[1][side], block[2][side], block[3][side]);
    int quad = from + (at.x * 4 + side) * PITCH + at.y / 4;
    if (TRANSPOSED == 4) {
      kept[quad] = along_k;
    } else {
      [[unroll]] for (int i = 0; i < TRANSPOSED; i++) kept[quad][at.y % 4 + i] = along_k[i];
    }
  }
}

// Keeps what was fetched of an operand, whose quads lie along or across k.
#define KEEP_ALONG_K(from, place, fetched) \
  [[unroll]] for (int i = 0; i < LOADS; i++) keep_along_k(from, place(i), fetched(i))
#define KEEP_ACROSS_K(from, place, fetched)                                                   \
  [[unroll]] for (int i = 0; i < LOADS; i += TRANSPOSED) {                                    \
    f16vec4 block[4] = f16vec4[](f16vec4(0), f16vec4(0), f16vec4(0), f16vec4(0));             \
    [[unroll]] for (int j = 0; j < TRANSPOSED; j++) block[j] = halves(fetched(i + j));        \
    keep_across_k(from, place(i), block);                                                     \
  }

// Keeps what was fetched in the buffer that begins at a quad.
void keep_step(int kept_from) {
#ifdef A_ALONG_K
  KEEP_ALONG_K(kept_from + KEPT_A, A_PLACE, fetched_a);
#else
  KEEP_ACROSS_K(kept_from + KEPT_A, A_PLACE, fetched_a)
#endif
#ifdef B_ALONG_K
  KEEP_ALONG_K(kept_from + KEPT_B, B_PLACE, fetched_b);
#else
  KEEP_ACROSS_K(kept_from + KEPT_B, B_PLACE, fetched_b)
#endif
}

void add_products(int kept_from, ivec2 corner) {
  for (int kk = 0; kk < K_QUADS * 4; kk += FRAGMENT_K) {
    FRAGMENT(float16_t, FRAGMENT_ROWS, FRAGMENT_K, gl_MatrixUseA) a_part[DOWN];
    [[unroll]] for (int i = 0; i < DOWN; i++) {
      coopMatLoad(a_part[i], kept, kept_from + KEPT_A + (corner.x + i * FRAGMENT_ROWS) * PITCH + kk / 4, PITCH,
                  gl_CooperativeMatrixLayoutRowMajor);
    }
    [[unroll]] for (int j = 0; j < ACROSS; j++) {
      FRAGMENT(float16_t, FRAGMENT_K, FRAGMENT_COLUMNS, gl_MatrixUseB) b_part;
      coopMatLoad(b_part, kept, kept_from + KEPT_B + (corner.y + j * FRAGMENT_COLUMNS) * PITCH + kk / 4, PITCH,
                  gl_CooperativeMatrixLayoutColumnMajor);
      [[unroll]] for (int i = 0; i < DOWN; i++) {
        sums[i * ACROSS + j] = coopMatMulAdd(a_part[i], b_part, sums[i * ACROSS + j]);
      }
    }
  }
}

// The driver decides which elements of a fragment an invocation holds, so each fragment goes through shared memory. It is
// picked from all by comparing, since accumulators that are indexed dynamically cannot stay in registers.
void store_fragment(Tile tile, int fragment, ivec2 corner, inout Moments moments) {
  int base = int(gl_SubgroupID) * FRAGMENT_ROWS * FRAGMENT_QUADS;
  [[unroll]] for (int f = 0; f < DOWN * ACROSS; f++) {
    if (f == fragment) {
      coopMatStore(FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator)(sums[f]), results, base,
                   FRAGMENT_QUADS, gl_CooperativeMatrixLayoutRowMajor);
    }
  }
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
  fetch_step();
  keep_step(0);
  barrier();
  int k_quad = tile.k_begin;
  int kept_from = 0;
  do {
    k_quad += K_QUADS;
    fetch_next(tile, k_quad < tile.k_end);
    add_products(kept_from, corner);
    if (BUFFERS == 1) barrier();
    kept_from = BUFFERS == 1 ? 0 : BUFFER_QUADS - kept_from;
    keep_step(kept_from);
    barrier();
  } while (k_quad < tile.k_end);
  // Not unrolled: the expression is much code, and NVIDIA's compiler then unrolls nothing (see gemm_store.glsl).
  for (int j = 0; j < ACROSS; j++) {
    Moments moments = NO_MOMENTS;
    for (int i = 0; i < DOWN; i++) {
      store_fragment(tile, i * ACROSS + j, corner + ivec2(i * FRAGMENT_ROWS, j * FRAGMENT_COLUMNS), moments);
    }
    if (FIND_MOMENTS) store_square_moments(tile, corner + ivec2(0, j * FRAGMENT_COLUMNS), moments);
  }
}

#endif
