// One tile of C per workgroup, computed by matrix units: TILE by TILE, divided into one square per subgroup, in
// fragments of a shape that the device reports. A and B go through shared memory, a step of k at a time: as they lie in
// memory, or with TRANSPOSE rows of A and columns of B each along k, which some matrix units read with the fewest
// loads. Lines are padded by 16 bytes to avoid bank conflicts. Accumulators are f32 or f16 (SUMS). Where factors are of 8
// bits (IS_FLOAT8), f16 has them divided by 256: see engine/ops/gemm/float8.h.
#ifndef HALFSTEP_GEMM_COOPERATIVE
#define HALFSTEP_GEMM_COOPERATIVE

layout(constant_id = 8) const int FRAGMENT_ROWS = 16;
layout(constant_id = 9) const int FRAGMENT_COLUMNS = 16;
layout(constant_id = 10) const int FRAGMENT_K = 16;
layout(constant_id = 11) const bool TRANSPOSE = true;
layout(constant_id = 12) const int TILE = 64;
layout(constant_id = 13) const int K_QUADS = 8;  // of a step
layout(constant_id = 105) const bool IS_FLOAT8 = false;

#define THREADS int(gl_WorkGroupSize.x)
#define TRANSPOSES
#include "gemm/gemm_stage.glsl"
#define SHUFFLES
#include "gemm/gemm_moments.glsl"

// Subgroups along a side of the tile; must match ops/gemm/tile_kernels.cpp.
const int SIDE = TILE == 32 ? 1 : 2;
const int LANES = THREADS / (SIDE * SIDE);  // of a subgroup
const int SQUARE = TILE / SIDE;
const int DOWN = SQUARE / FRAGMENT_ROWS;  // fragments of a subgroup's square
const int ACROSS = SQUARE / FRAGMENT_COLUMNS;
const int PACKED = IS_FLOAT8 ? 2 : 1;  // quads in the room of four f16
// From one line that is kept to the next, along k and across, in that room.
const int PITCH = K_QUADS / PACKED + 2;
const int PITCH_ACROSS = TILE / 4 / PACKED + 2;

#ifdef SUMS_f16
#define SUM float16_t
#else
#define SUM float
#endif
#define FRAGMENT(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, use>

// Results are stored a band of fragments at a time, all columns of the square; a quad of f32 takes the room of two.
const int BAND_QUADS = SQUARE / 4;  // of a row
const int BAND_PITCH = 2 * BAND_QUADS + 2;
const int BAND = FRAGMENT_ROWS * BAND_QUADS;
const int BANDS_KEPT = SIDE * SIDE * FRAGMENT_ROWS * BAND_PITCH;
// Quads that a lane stores together, so that it waits for their arguments once.
const int TOGETHER = BAND >= 4 * LANES ? 4 : BAND >= 2 * LANES ? 2 : 1;

// The room of an operand, along or across k: lines of a step; must match ops/gemm/tile_kernels.cpp.
const int KEPT_ALONG_K = TILE * PITCH;
const int KEPT_ACROSS_K = K_QUADS * 4 * PITCH_ACROSS;
const int OPERAND_KEPT = KEPT_ALONG_K > KEPT_ACROSS_K ? KEPT_ALONG_K : KEPT_ACROSS_K;
const int KEPT_A = 0;
const int KEPT_B = OPERAND_KEPT;
const int OPERANDS_KEPT = 2 * OPERAND_KEPT;
// Quads as they are stored, or of 8 bits; in the end those of results.
shared uvec2 kept[OPERANDS_KEPT > BANDS_KEPT ? OPERANDS_KEPT : BANDS_KEPT];

FRAGMENT(SUM, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator) sums[DOWN * ACROSS];

// Four numbers of 8 bits from f16 that has them divided by 256: its sign, and the bits after the first one of its
// exponent. There is neither infinity nor NaN: a tensor with such counts NaN as a whole.
uint eights_of(uvec2 quad) {
  uvec2 upper = quad << 1 & 0x7f007f00u | quad & 0x80ff80ffu;
  return upper.x >> 8 & 0xffu | upper.x >> 16 & 0xff00u | upper.y << 8 & 0xff0000u | upper.y & 0xff000000u;
}

// Keeps a quad of a line.
void keep(int line, int quad, uvec2 v) {
  if (IS_FLOAT8) {
    kept[line + quad / 2][quad % 2] = eights_of(v);
  } else {
    kept[line + quad] = v;
  }
}

// The elements of a side, 0 or 1, of two words.
uint paired(uint first, uint second, int side) {
  uint made = side == 0 ? first & 0xffffu | second << 16 : first >> 16 | second & 0xffff0000u;
  if (!IS_BF16) made = packFloat2x16(f16vec2(unpackFloat2x16(first)[side], unpackFloat2x16(second)[side]));
  return made;
}

// Keeps TRANSPOSED quads across k, the first of which is at a place, as four quads along k or parts of such.
void keep_transposed(int from, ivec2 at, uvec2 block[4]) {
  [[unroll]] for (int side = 0; side < 4; side++) {
    int word = side / 2;
    uvec2 along_k = uvec2(paired(block[0][word], block[1][word], side % 2),
                          paired(block[2][word], block[3][word], side % 2));
    int line = from + (at.x * 4 + side) * PITCH;
    if (TRANSPOSED == 4) {
      keep(line, at.y / 4, along_k);
    } else {
      kept[line + at.y / 4][at.y % 4 / 2] = along_k.x;
    }
  }
}

// Keeps what was fetched of an operand, whose quads lie along or across k.
#define KEEP_ALONG_K(from, place, fetched) \
  [[unroll]] for (int i = 0; i < LOADS; i++) keep((from) + place(i).x * PITCH, place(i).y, fetched(i))
#define KEEP_ACROSS_K(from, place, fetched)                                               \
  [[unroll]] for (int i = 0; i < LOADS; i += TRANSPOSE ? TRANSPOSED : 1) {                \
    if (TRANSPOSE) {                                                                      \
      uvec2 block[4] = uvec2[](uvec2(0), uvec2(0), uvec2(0), uvec2(0));                   \
      [[unroll]] for (int j = 0; j < TRANSPOSED; j++) block[j] = fetched(i + j);          \
      keep_transposed(from, place(i), block);                                             \
    } else {                                                                              \
      keep((from) + place(i).y * PITCH_ACROSS, place(i).x, fetched(i));                   \
    }                                                                                     \
  }

// Keeps what was fetched.
void keep_step() {
#ifdef A_ALONG_K
  KEEP_ALONG_K(KEPT_A, A_PLACE, fetched_a);
#else
  KEEP_ACROSS_K(KEPT_A, A_PLACE, fetched_a)
#endif
#ifdef B_ALONG_K
  KEEP_ALONG_K(KEPT_B, B_PLACE, fetched_b);
#else
  KEEP_ACROSS_K(KEPT_B, B_PLACE, fetched_b)
#endif
}

#ifdef A_ALONG_K
const bool A_IS_ALONG_K = true;
#else
const bool A_IS_ALONG_K = TRANSPOSE;
#endif
#ifdef B_ALONG_K
const bool B_IS_ALONG_K = true;
#else
const bool B_IS_ALONG_K = TRANSPOSE;
#endif

// Loads a fragment of A or B, which begins at a row or column and a k of the step.
#define LOAD_FRAGMENT(fragment, from, line, k, along_k, layout_along, layout_across)                                \
  if (along_k) {                                                                                                    \
    coopMatLoad(fragment, kept, (from) + (line) * PITCH + (k) / 4 / PACKED, PITCH, layout_along);                   \
  } else {                                                                                                          \
    coopMatLoad(fragment, kept, (from) + (k) * PITCH_ACROSS + (line) / 4 / PACKED, PITCH_ACROSS, layout_across);    \
  }

void add_products(ivec2 corner) {
  for (int kk = 0; kk < K_QUADS * 4; kk += FRAGMENT_K) {
    FRAGMENT(float16_t, FRAGMENT_ROWS, FRAGMENT_K, gl_MatrixUseA) a_part[DOWN];
    [[unroll]] for (int i = 0; i < DOWN; i++) {
      LOAD_FRAGMENT(a_part[i], KEPT_A, corner.x + i * FRAGMENT_ROWS, kk, A_IS_ALONG_K,
                    gl_CooperativeMatrixLayoutRowMajor, gl_CooperativeMatrixLayoutColumnMajor)
    }
    [[unroll]] for (int j = 0; j < ACROSS; j++) {
      FRAGMENT(float16_t, FRAGMENT_K, FRAGMENT_COLUMNS, gl_MatrixUseB) b_part;
      LOAD_FRAGMENT(b_part, KEPT_B, corner.y + j * FRAGMENT_COLUMNS, kk, B_IS_ALONG_K,
                    gl_CooperativeMatrixLayoutColumnMajor, gl_CooperativeMatrixLayoutRowMajor)
      [[unroll]] for (int i = 0; i < DOWN; i++) {
        sums[i * ACROSS + j] = coopMatMulAdd(a_part[i], b_part, sums[i * ACROSS + j]);
      }
    }
  }
}

// The driver decides which elements of a fragment an invocation holds, so results go through shared memory. Fragments
// are picked from all by comparing, since accumulators that are indexed dynamically cannot stay in registers.
void keep_band(int band, int from) {
  [[unroll]] for (int f = 0; f < DOWN * ACROSS; f++) {
    if (f / ACROSS == band) {
      coopMatStore(FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator)(sums[f]), kept,
                   from + f % ACROSS * FRAGMENT_COLUMNS / 2, BAND_PITCH, gl_CooperativeMatrixLayoutRowMajor);
    }
  }
}

vec4 kept_result(int from, int in_band) {
  int at = from + in_band / BAND_QUADS * BAND_PITCH + in_band % BAND_QUADS * 2;
  vec4 v = vec4(uintBitsToFloat(kept[at]), uintBitsToFloat(kept[at + 1]));
  return IS_FLOAT8 ? v * (1.0 / 65536.0) : v;
}

// Stores a band, whose first row and column are at a place of the tile.
void store_band(Tile tile, int from, ivec2 place, inout Moments moments) {
  for (int first = int(gl_SubgroupInvocationID); first < BAND; first += LANES * TOGETHER) {
    Stored quads_stored[TOGETHER];
    vec4 read[TOGETHER][ARGUMENTS];
    [[unroll]] for (int t = 0; t < TOGETHER; t++) {
      int in_band = first + t * LANES;
      int row = tile.row + place.x + in_band / BAND_QUADS;
      quads_stored[t] = stored_quad(tile, row, tile.column_quad + place.y / 4 + in_band % BAND_QUADS);
      // Reading where nothing is stored spares a branch, which loads would not be moved across.
      read_arguments(uint(is_expressed(quads_stored[t]) ? quads_stored[t].at : tile.c_base));
      [[unroll]] for (int j = 0; j < ARGUMENTS; j++) read[t][j] = registers[j];
    }
    [[unroll]] for (int t = 0; t < TOGETHER; t++) {
      [[unroll]] for (int j = 0; j < ARGUMENTS; j++) registers[j] = read[t][j];
      vec4 v = kept_result(from, first + t * LANES) + column_bias(tile, quads_stored[t].column_quad);
      store_read(tile, quads_stored[t], v);
      include_row(moments, tile, quads_stored[t].row, v);
    }
  }
}

// Stores the moments of a square's columns: every BAND_QUADS-th lane has the same columns.
void store_square_moments(Tile tile, ivec2 corner, Moments moments) {
  for (uint mask = uint(BAND_QUADS); mask < uint(LANES); mask *= 2u) moments = merged_across(moments, mask);
  int quad = int(gl_SubgroupInvocationID);
  if (quad < BAND_QUADS) {
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
  keep_step();
  barrier();
  int k_quad = tile.k_begin;
  do {
    k_quad += K_QUADS;
    fetch_next(tile, k_quad < tile.k_end);
    add_products(corner);
    barrier();
    keep_step();
    barrier();
  } while (k_quad < tile.k_end);
  int from = int(gl_SubgroupID) * FRAGMENT_ROWS * BAND_PITCH;
  Moments moments = NO_MOMENTS;
  for (int band = 0; band < DOWN; band++) {
    keep_band(band, from);
    subgroupBarrier();
    store_band(tile, from, corner + ivec2(band * FRAGMENT_ROWS, 0), moments);
    subgroupBarrier();
  }
  if (FIND_MOMENTS) store_square_moments(tile, corner, moments);
}

#endif
