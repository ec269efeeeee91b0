// A tile of C for each subgroup of 8: ROWS rows by 32 columns, four of them for each invocation, all in registers. All
// invocations load the same of A, by address, which the driver does once for all; B lies in panels (ops/gemm_panels.comp)
// in which what the eight of them need next to each other is what they need at once. So a product takes a multiplication
// by a number in memory and an addition, and nothing else. This is the body for drivers with Target::uniform_loads.
//
// Such loads are done whether or not an invocation is active, so that every address must be good: loops are
// do-while, which lavapipe does not run once too often, and rows without a pixel read some other and are set back.
#ifndef HALFSTEP_GEMM_UNIFORM
#define HALFSTEP_GEMM_UNIFORM

#include "common/gemm_a.glsl"
#include "common/gemm_store.glsl"

layout(constant_id = 5) const int STEP = 1;  // quads of k done at a time; a divisor of a segment's

// Their sums, the columns of B and a number of A are what 32 registers hold; with eight rows, sums go to memory and back.
const int ROWS = 6;
const int LANES = 8;
const int PANEL_QUADS = 8;  // of a k in a panel
const int MOST_STEP = 8;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer RowStep { vec4 v[MOST_STEP]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer PanelStep {
  vec4 v[MOST_STEP * 4 * PANEL_QUADS];
};

ACursor a_at[ROWS];
vec4 sums[ROWS];

int lane() { return int(gl_SubgroupInvocationID); }

// This invocation's of eight numbers that lie next to each other: becomes one load of a vector.
float of_lane(vec4 low, vec4 high) {
  float v = 0.0;
  [[unroll]] for (int e = 0; e < 4; e++) v = lane() == e ? low[e] : v;
  [[unroll]] for (int e = 0; e < 4; e++) v = lane() == 4 + e ? high[e] : v;
  return v;
}

void add_products(PanelStep panel, int k_quad) {
  [[unroll]] for (int q = 0; q < STEP; q++) {
    [[unroll]] for (int kk = 0; kk < 4; kk++) {
      int first = (q * 4 + kk) * PANEL_QUADS;
      vec4 columns_of_b;
      [[unroll]] for (int j = 0; j < 4; j++) {
        columns_of_b[j] = of_lane(panel.v[first + 2 * j], panel.v[first + 2 * j + 1]);
      }
      [[unroll]] for (int i = 0; i < ROWS; i++) {
        float row = RowStep(a + a_at[i].base + k_quad).v[q][kk];
        sums[i] = fma(vec4(row), columns_of_b, sums[i]);
      }
    }
  }
}

// Adds the products of quads of k from `done` on, at most to the end of their segment; returns how many.
int add_segment(Tile tile, int panel, int done) {
  int segment = done / quads(k);
  int k_quad = done - segment * quads(k);
  int count = min(quads(k) - k_quad, tile.k_end - done);
  vec4 before[ROWS];
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    a_seek(a_at[i], segment);
    before[i] = sums[i];
  }
  panel += done * 4 * PANEL_QUADS;
  int k_stop = k_quad + count;
  do {
    add_products(PanelStep(b + panel), k_quad);
    panel += STEP * 4 * PANEL_QUADS;
    k_quad += STEP;
  } while (k_quad < k_stop);
#ifdef OPERANDS_patches_row
  [[unroll]] for (int i = 0; i < ROWS; i++) sums[i] = a_at[i].inside ? sums[i] : before[i];
#endif
  return count;
}

// Tiles below each other follow each other: a panel stays in the cache while all of A, of which a tile has less, passes.
Tile panel_tile() {
  Tile tile = workgroup_tile(ROWS, LANES);
  int at = tile.row / ROWS * column_tiles + tile.column_quad / LANES;
  tile.row = at % row_tiles * ROWS;
  tile.column_quad = at / row_tiles * LANES;
  return tile;
}

void main() {
  Tile tile = panel_tile();
  int column_quad = tile.column_quad + lane();
  int panel = tile.b_base + tile.column_quad / LANES * segments * quads(k) * 4 * PANEL_QUADS;
  vec4 start = column_bias(tile, column_quad);
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    a_at[i] = a_cursor(tile, tile.row + i);
    sums[i] = start;
  }
  int done = tile.k_begin;
  do {
    done += add_segment(tile, panel, done);
  } while (done < tile.k_end);
  // Not unrolled, and a copy: see gemm_store.glsl.
  vec4 results[ROWS];
  [[unroll]] for (int i = 0; i < ROWS; i++) results[i] = sums[i];
  int row = 0;
  do {
    store_quad(tile, tile.row + row, column_quad, results[row]);
    row++;
  } while (row < ROWS);
}

#endif
