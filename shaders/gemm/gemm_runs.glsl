// Convolutions whose taps in a row read adjacent pixels, with a register tile per subgroup as in gemm_thin.glsl: each
// of its LANES invocations has ROWS adjacent positions of a line, and all columns of the tile. What taps of one row
// read of these overlaps, so ROWS + ROW_TAPS - 1 pixels are loaded for them, not ROWS * ROW_TAPS.
#ifndef HALFSTEP_GEMM_RUNS
#define HALFSTEP_GEMM_RUNS

#include "gemm/gemm_a.glsl"
#include "gemm/gemm_b.glsl"
#define SHUFFLES
#include "gemm/gemm_moments.glsl"

layout(constant_id = 8) const int ROWS = 8;          // positions of an invocation; a line has a whole number of runs
layout(constant_id = 9) const int ROW_TAPS = 3;      // in a row
layout(constant_id = 10) const int COLUMN_QUADS = 4;  // of the tile; 2 or 4

const int LANES = 8;
int lane_zero;
#define LANE_ZERO lane_zero
#include "common/from_lane.glsl"

const int PIXELS = ROWS + ROW_TAPS - 1;
const int B_LOADS = COLUMN_QUADS / 2;  // quads of B that each lane loads per four k of a tap
const int ELEMENTS = QUAD_ELEMENTS;

struct Pixel {
  int at;  // its address
  bool inside;
};

Pixel pixels[PIXELS];  // in a line under the positions
vec4 a_quads[PIXELS];  // four k of them
vec4 b_quads[B_LOADS];
vec4 sums[ROWS * COLUMN_QUADS];

int lane() {
  return int(gl_SubgroupInvocationID);
}

// A lane has four k of a column, or four columns of a k.
#ifdef B_ALONG_K
BCursor b_place(Tile tile, int i) {
  return b_cursor(tile, tile.column_quad * 4 + i * LANES + lane());
}
float b_of(int kk, int column) {
  return from_lane(b_quads[column / LANES][kk], column % LANES);
}
#else
BCursor b_place(Tile tile, int i) {
  return b_cursor(tile, tile.column_quad + lane() % COLUMN_QUADS);
}
float b_of(int kk, int column) {
  int place = kk * COLUMN_QUADS + column / 4;
  return from_lane(b_quads[place / LANES][column % 4], place % LANES);
}
#endif

BCursor b_at[B_LOADS];

void load_b(int tap, int k_quad) {
  [[unroll]] for (int i = 0; i < B_LOADS; i++) {
    BCursor cursor = b_at[i];
    b_seek(cursor, tap);
#ifdef B_ALONG_K
    b_quads[i] = b_load(cursor, k_quad);
#else
    b_quads[i] = b_load(cursor, k_quad * 4 + (i * LANES + lane()) / COLUMN_QUADS);
#endif
  }
}

// Four k of the taps of a row. Those are in order of the pixels that they read.
void add_products(int first_tap, int tap_step, int k_quad) {
  [[unroll]] for (int j = 0; j < PIXELS; j++) {
    vec4 v = A_QUAD(pixels[j].at + k_quad);
    a_quads[j] = pixels[j].inside ? v : vec4(0.0);
  }
  [[unroll]] for (int t = 0; t < ROW_TAPS; t++) {
    load_b(first_tap + t * tap_step, k_quad);
    [[unroll]] for (int quad = 0; quad < COLUMN_QUADS; quad++) {
      vec4 b_values[4];
      [[unroll]] for (int kk = 0; kk < 4; kk++) {
        [[unroll]] for (int e = 0; e < 4; e++) b_values[kk][e] = b_of(kk, quad * 4 + e);
      }
      [[unroll]] for (int i = 0; i < ROWS; i++) {
        [[unroll]] for (int kk = 0; kk < 4; kk++) {
          int at = i * COLUMN_QUADS + quad;
          if (kk < ELEMENTS) sums[at] = fma(vec4(a_quads[i + t][kk]), b_values[kk], sums[at]);
        }
      }
    }
  }
}

int row_of(Tile tile, int i) {
  return tile.row + lane() * ROWS + i;
}

// k in order of rows of taps, then of quads, then of taps.
void add_tile_products(Tile tile) {
  int position = min(row_of(tile, 0), rows - ROWS);
  int line = position / grid.y;
  int n = line / grid.x;
  ivec2 place = ivec2(line - n * grid.x, position - line * grid.y);
  bool reversed = tap_step.y < 0;
  int first_column = place.y + offset.y + (reversed ? 1 - ROW_TAPS : 0);
  int quads_of_k = quads(k);
  int row_quads = quads_of_k * ROW_TAPS;
  int tap_row = tile.k_begin / row_quads;
  int last_row = tile.k_end / row_quads;
  int y = place.x * stride.x + offset.x + tap_row * tap_step.x;
  int image_start = tile.a_base + n * image.x * image.y * a_pitch;
  ivec2 extent = image;
  int pitch = a_pitch;
  int y_step = tap_step.x;
  int in_row_step = reversed ? -1 : 1;
  int first_in_row = reversed ? ROW_TAPS - 1 : 0;
  do {
    bool inside = uint(y) < uint(extent.x);
    int start = image_start + (inside ? y : 0) * extent.y * pitch;
    [[unroll]] for (int j = 0; j < PIXELS; j++) {
      int column = first_column + j;
      bool in_line = uint(column) < uint(extent.y);
      pixels[j] = Pixel(start + (in_line ? column : 0) * pitch, inside && in_line);
    }
    int k_quad = 0;
    do {
      add_products(tap_row * ROW_TAPS + first_in_row, in_row_step, k_quad);
      k_quad++;
    } while (k_quad < quads_of_k);
    tap_row++;
    y += y_step;
  } while (tap_row < last_row);
}

#include "gemm/gemm_lanes.glsl"

void main() {
  lane_zero = min(groups, 0);
  Tile tile = workgroup_tile(ROWS * LANES, COLUMN_QUADS);
  [[unroll]] for (int i = 0; i < B_LOADS; i++) b_at[i] = b_place(tile, i);
  start_sums(tile);
  add_tile_products(tile);
  store_sums(tile);
}

#endif
