// Loads a workgroup's parts of A and B from memory into registers, K_QUADS quads of k at a time, for kernels that then
// copy them to shared memory: they fetch the next step while they compute with the current one. Quads stay as they are
// stored until they are copied, so that no load waits for another. The kernel defines TILE, the rows and columns of its
// tile; K_QUADS; and THREADS, the invocations of its workgroup.
#ifndef HALFSTEP_GEMM_STAGE
#define HALFSTEP_GEMM_STAGE

#define OPERANDS_AS_STORED
#include "gemm/gemm_a.glsl"
#include "gemm/gemm_b.glsl"

#if defined(OPERANDS_patches_row) || defined(OPERANDS_patches_col) || defined(OPERANDS_pixels_row)
#define IN_SEGMENTS  // k has more than one
#endif

const int LOADS = TILE * K_QUADS / THREADS;  // quads of A, and of B, per invocation and step
// Loads of consecutive k, for the same rows or columns, where the kernel defines TRANSPOSES and exchanges them.
const int TRANSPOSED = LOADS < 4 ? LOADS : 4;

// Where an invocation is if all of them have one place each, in lines of that length, round after round: {place in its
// line, line}. From one round to the next that is a constant, which compilers do not see past a division.
ivec2 in_lines(int length, int round) {
  int i = int(gl_LocalInvocationIndex);
  if (THREADS % length == 0) return ivec2(i % length, i / length + round * (THREADS / length));
  i += round * THREADS;
  return ivec2(i % length, i / length);
}

// The quad of the tile that an invocation loads: {row or column, quad of k} if quads lie along k, else {quad of rows or
// columns, k}. All loads of an invocation are in the same quad of k, or with `pairs` along k in two. Adjacent
// invocations load adjacent quads, or with `pairs` adjacent pairs of quads.
ivec2 place_along_k(int load, bool pairs) {
  const int width = pairs ? 2 : 1;
  ivec2 place = in_lines(K_QUADS / width, load / width);
  return ivec2(place.y, place.x * width + load % width);
}
#ifdef TRANSPOSES
// Without exchanging, adjacent invocations load adjacent pairs of quads, and each has up to four consecutive k.
const int STORED_K = LOADS >= 8 ? 4 : LOADS / 2;
const int PARTNER = TRANSPOSE ? TRANSPOSED : 1;  // the second quad of a pair is this many loads after the first
const bool PAIRS_ACROSS = TRANSPOSE ? LOADS >= 2 * PARTNER : LOADS >= 2;
ivec2 place_across_k(int load, bool pairs) {
  if (!TRANSPOSE) {
    int i = int(gl_LocalInvocationIndex);
    const int across = TILE / 4 * STORED_K / LOADS;  // invocations
    return ivec2((load / (2 * STORED_K) * across + i % across) * 2 + load % 2,
                 i / across * STORED_K + load / 2 % STORED_K);
  }
  const int width = pairs ? 2 : 1;
  int block = load / TRANSPOSED;
  ivec2 place = in_lines(K_QUADS * 4 / TRANSPOSED, block / width);
  return ivec2(place.y * width + block % width, place.x * TRANSPOSED + load % TRANSPOSED);
}
#elif defined(DOTS)
// Each load with an even number and the one after it are at two consecutive k.
const int PARTNER = 2;
const bool PAIRS_ACROSS = LOADS == 4;
ivec2 place_across_k(int load, bool pairs) {
  int i = int(gl_LocalInvocationIndex);
  if (pairs) return ivec2(i % (TILE / 8) * 2 + load / 2, i / (TILE / 8) * 2 + load % 2);
  return ivec2(i % (TILE / 4), i / (TILE / 4) * LOADS + load);
}
#else
const int PARTNER = 1;
const bool PAIRS_ACROSS = LOADS == 2;
ivec2 place_across_k(int load, bool pairs) {
  int i = int(gl_LocalInvocationIndex);
  if (pairs) return ivec2(i % (TILE / 8) * 2 + load, i / (TILE / 8));
  return ivec2(i % (TILE / 4), i / (TILE / 4) * LOADS + load);
}
#endif

// Where an invocation is along k: a quad of k, over all segments and in its own.
struct KPlace {
  int all;
  int segment;
  int quad;
};

ACursor a_at[LOADS];
BCursor b_at[LOADS];
KPlace a_place;
KPlace b_place;
OPERAND a_next[LOADS];
OPERAND b_next[LOADS];
bool a_is_in_part;  // its place along k is before the end of the workgroup's part; likewise of B
bool b_is_in_part;
// A step along k.
int step_segments;
int step_quads;

#ifdef A_ALONG_K
const bool PAIRS_OF_A = (PAIRS & 1u) != 0u && LOADS >= 2;
const int A_PARTNER = 1;
#define A_PLACE(load) place_along_k(load, PAIRS_OF_A)
#define A_QUAD_OF_K A_PLACE(0).y
#define A_K(load) (a_place.quad + A_PLACE(load).y - A_QUAD_OF_K)
#else
const bool PAIRS_OF_A = (PAIRS & 1u) != 0u && PAIRS_ACROSS;
const int A_PARTNER = PARTNER;
#define A_PLACE(load) place_across_k(load, PAIRS_OF_A)
#define A_QUAD_OF_K (A_PLACE(0).y / 4)
#define A_K(load) (a_place.quad * 4 + A_PLACE(load).y % 4)
#endif
#ifdef B_ALONG_K
const bool PAIRS_OF_B = (PAIRS & 2u) != 0u && LOADS >= 2;
const int B_PARTNER = 1;
#define B_PLACE(load) place_along_k(load, PAIRS_OF_B)
#define B_QUAD_OF_K B_PLACE(0).y
#define B_K(load) (b_place.quad + B_PLACE(load).y - B_QUAD_OF_K)
#else
const bool PAIRS_OF_B = (PAIRS & 2u) != 0u && PAIRS_ACROSS;
const int B_PARTNER = PARTNER;
#define B_PLACE(load) place_across_k(load, PAIRS_OF_B)
#define B_QUAD_OF_K (B_PLACE(0).y / 4)
#define B_K(load) (b_place.quad * 4 + B_PLACE(load).y % 4)
#endif

// A place past the end of the part is at its start instead, where there is memory; what is read there is not used.
KPlace k_place(Tile tile, int ahead) {
  int all = tile.k_begin + ahead;
  int quad = all < tile.k_end ? all : tile.k_begin;
#ifdef IN_SEGMENTS
  int segment = quad / quads(k);
#else
  int segment = 0;
#endif
  return KPlace(all, segment, quad - segment * quads(k));
}

// By a step; past the end of the part it stays where it was. Without a loop, so that a compiler can issue loads
// together.
void k_advance(Tile tile, inout KPlace place) {
  place.all += K_QUADS;
  if (place.all >= tile.k_end) return;
#ifdef IN_SEGMENTS
  place.segment += step_segments;
  place.quad += step_quads;
  if (place.quad >= quads(k)) {
    place.quad -= quads(k);
    place.segment++;
  }
#else
  place.quad += K_QUADS;
#endif
}

void seek_a() {
  [[unroll]] for (int i = 0; i < LOADS; i++) a_seek(a_at[i], segment_at(a_place.segment));
}

void seek_b() {
  [[unroll]] for (int i = 0; i < LOADS; i++) b_seek(b_at[i], segment_at(b_place.segment).index);
}

void place_operands(Tile tile) {
  step_segments = K_QUADS / quads(k);
  step_quads = K_QUADS - step_segments * quads(k);
  a_place = k_place(tile, A_QUAD_OF_K);
  b_place = k_place(tile, B_QUAD_OF_K);
  a_is_in_part = a_place.all < tile.k_end;
  b_is_in_part = b_place.all < tile.k_end;
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
  }
  seek_a();
  seek_b();
}

void advance_operands(Tile tile) {
  int a_segment = a_place.segment;
  int b_segment = b_place.segment;
  k_advance(tile, a_place);
  k_advance(tile, b_place);
  a_is_in_part = a_place.all < tile.k_end;
  b_is_in_part = b_place.all < tile.k_end;
  if (a_place.segment != a_segment) seek_a();
  if (b_place.segment != b_segment) seek_b();
}

bool is_first_of_pair(int load, int partner) { return load / partner % 2 == 0; }
int second_of_pair(int load, int partner) { return min(load + partner, LOADS - 1); }

// Fetches the step that the operands are placed at.
void fetch_step() {
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    if (!PAIRS_OF_A) a_next[i] = A_QUAD(a_address(a_at[i], A_K(i)));
    if (!PAIRS_OF_B) b_next[i] = B_QUAD(b_address(b_at[i], B_K(i)));
#ifdef NARROW
    if (PAIRS_OF_A && is_first_of_pair(i, A_PARTNER)) {
      uvec4 pair = PAIR_OF_A(a_address(a_at[i], A_K(i)));
      a_next[i] = pair.xy;
      a_next[second_of_pair(i, A_PARTNER)] = pair.zw;
    }
    if (PAIRS_OF_B && is_first_of_pair(i, B_PARTNER)) {
      uvec4 pair = PAIR_OF_B(b_address(b_at[i], B_K(i)));
      b_next[i] = pair.xy;
      b_next[second_of_pair(i, B_PARTNER)] = pair.zw;
    }
#endif
  }
}

// Fetches the step after the one that the operands are placed at, or zeros if there is none. Where this is no branch,
// RADV moves the loads behind the products.
void fetch_next(Tile tile, bool is_there) {
  if (is_there) {
    advance_operands(tile);
    fetch_step();
  } else {
    [[unroll]] for (int i = 0; i < LOADS; i++) {
      a_next[i] = OPERAND(0);
      b_next[i] = OPERAND(0);
    }
  }
}

// What was fetched, or zeros where there is nothing.
OPERAND fetched_a(int load) { return a_is_in_part ? a_value(a_at[load], A_K(load), a_next[load]) : OPERAND(0); }
OPERAND fetched_b(int load) { return b_is_in_part ? b_value(B_K(load), b_next[load]) : OPERAND(0); }

#endif
