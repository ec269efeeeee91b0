// One tile of C per subgroup, all in registers: COLUMNS columns of SUMS / COLUMNS rows for each of its LANES
// invocations. All invocations load the same element of A, by address, which the driver executes as one load. The
// values of B that the invocations need at the same time are contiguous: in a row of B, where it is, or in panels that
// it is packed into (gemm/gemm_panels.comp). This kernel is for drivers with Target::uniform_loads.
//
// Such loads are executed even if an invocation is inactive, so every address must be valid. Loops are do-while, of
// which lavapipe runs no extra round. Where there is no pixel, zeros that are stored before the panels are read.
#ifndef HALFSTEP_GEMM_UNIFORM
#define HALFSTEP_GEMM_UNIFORM

layout(constant_id = 8) const int STEP = 1;      // quads of k that are added at a time; a divisor of those of a segment
layout(constant_id = 9) const int SEGMENTS = 0;  // see gemm_steps.glsl
layout(constant_id = 10) const int LANES = 8;     // of a subgroup: 8 or 16
layout(constant_id = 11) const int COLUMNS = 4;  // per invocation: 1, 2 or 4
layout(constant_id = 12) const int LENGTH = 0;   // k that STEP quads have, where that is always as many; else 0
layout(constant_id = 13) const int SUMS = 24;    // of an invocation: whole rows, at most 24
layout(constant_id = 14) const int IN_ROW = 0;   // see gemm_taps.glsl
layout(constant_id = 15) const int B_PITCH = 0;  // quads of a row of B, which is read where it is; 0: it is in panels
layout(constant_id = 16) const bool INSIDE = false;  // patches: no tap of a position is outside the image
layout(constant_id = 17) const bool ALL = false;  // SEGMENTS are all there are
// Patches whose tiles are adjacent positions of one line: quads from a row of A to the next, else 0; and how many
// positions at either end of a line some tap may be beside the image of.
layout(constant_id = 18) const int A_APART = 0;
layout(constant_id = 19) const int MARGIN = 0;
layout(constant_id = 20) const bool FULL = false;  // all groups have a tile, and no tile columns past the last
#define ALL_AT_ONCE ALL
#define HAS_IN_ROW

int lane() { return int(gl_SubgroupInvocationID); }

#include "gemm/gemm_a.glsl"
#define ACROSS_LANES
#define WHOLE_PARTS WHOLE
const bool WHOLE = FULL && TAP_STRIDE_Y == 0 && EDGE != 2u && EDGE != 3u;  // whether all that is there is stored whole
#include "gemm/gemm_moments.glsl"

const int ROWS = SUMS / COLUMNS;
// k that are added to a row before the next. More than one use an address of A so often, but take registers for B's.
const int TOGETHER = SUMS > 16 ? 4 / COLUMNS : 1;
const bool IN_PANELS = B_PITCH == 0;
const int PANEL_QUADS = LANE_QUADS * COLUMNS;  // per k of a panel
const int K_APART = IN_PANELS ? PANEL_QUADS : B_PITCH;  // quads from a k of B to the next
const int MOST_STEP = 16;
const int BLOCK = 16;  // tiles in a block of rows

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer RowStep { vec4 v[MOST_STEP]; };

float sums[SUMS];  // of a row its COLUMNS, then the next row's

int tile_b;     // where the tile's columns of B begin
int segment_b;  // where the segment's part of them does

#ifdef A_ALONG_K
const bool IN_LINE = A_APART > 0;
ACursor a_at[ROWS];   // IN_LINE, only the first
QuadAt row_at[ROWS];  // addresses of the segment's elements of A
#ifdef OPERANDS_patches_row
QuadAt start_at[ROWS];  // of those of a tap without a shift

// Leaves the rows of taps out that are outside the image for the whole line of positions.
void keep_rows_inside(inout Tile tile) {
  int y = a_at[0].place.x;
  int step = abs(tap_step.x);
  // Taps that lie before the image and those up to its end, counted in the direction in which they step.
  int before = tap_step.x > 0 ? -y : y - image.x + 1;
  int tap_rows = segments / IN_ROW;
  int first = min(max(before + step - 1, 0) / step, tap_rows);
  int end = min(max(before + image.x - 1 + step, 0) / step, tap_rows);
  int quads_of_row = IN_ROW * quads(k);
  tile.k_begin = max(tile.k_begin, first * quads_of_row);
  tile.k_end = min(tile.k_end, end * quads_of_row);
}

void seek_in_line(Segment segment) {
  QuadAt first = start_at[0] + a_offset(segment);
  int column = a_at[0].place.y + segment.shift.y;
  QuadAt zeros = b;
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    row_at[i] = first + i * A_APART;
    if (INSIDE || (i >= MARGIN && i < ROWS - MARGIN)) continue;
    bool inside = uint(column + i * stride.y) < uint(image.y);
    if (!inside) row_at[i] = zeros;
  }
}
#endif

void place_a(inout Tile tile) {
  a_at[0] = a_cursor(tile, tile.row);
  [[unroll]] for (int i = 1; i < ROWS; i++) {
    if (!IN_LINE) a_at[i] = a_cursor_after(a_at[i - 1], tile, tile.row + i);
  }
#ifdef OPERANDS_patches_row
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    if (i == 0 || !IN_LINE) start_at[i] = a + a_at[i].start;
  }
  if (IN_LINE && !INSIDE) keep_rows_inside(tile);
#else
  [[unroll]] for (int i = 0; i < ROWS; i++) row_at[i] = a + a_at[i].base;
#endif
}
void seek_a(Segment segment) {
#ifdef OPERANDS_patches_row
  if (IN_LINE) {
    seek_in_line(segment);
    return;
  }
  int offset_quads = a_offset(segment);
  QuadAt zeros = b;
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    a_seek(a_at[i], segment);
    QuadAt at = start_at[i] + offset_quads;
    row_at[i] = zeros;
    if (INSIDE || a_at[i].inside) row_at[i] = at;
  }
#endif
}
float a_of(int i, int k_quad, int q, int kk) { return RowStep(row_at[i] + k_quad).v[q][kk]; }
#else
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer ElementAt { float v; };
ElementAt row_at[ROWS];  // addresses of the rows' first elements
int segment_start;       // from there to the segment's first element

#ifdef OPERANDS_planes_row
// Planes {n, channels, height, width}: a row of A is a (tap, channel), a segment of k is a line of positions.
int row_start(Tile tile, int row) {
  int tap = row / channels;
  int channel = row - tap * channels;
  int tap_row = tap / kernel_width;
  int line = channel * image.x + tap_row * tap_step.x;
  return line * a_pitch * 4 + (tap - tap_row * kernel_width) * tap_step.y;
}
void seek_a(Segment segment) {
  int line = segment.place.x * channels * image.x + segment.place.y * stride.x;
  segment_start = line * a_pitch * 4;
}
int k_pitch() { return stride.y; }
#else
// {k, rows}, of one segment
int row_start(Tile tile, int row) { return tile.a_base * 4 + row; }
void seek_a(Segment segment) { segment_start = 0; }
int k_pitch() { return a_pitch * 4; }
#endif

void place_a(inout Tile tile) {
  [[unroll]] for (int i = 0; i < ROWS; i++)
    row_at[i] = ElementAt(a) + row_start(tile, min(tile.row + i, rows - 1));
}
// k past the last read the last one again, and give zeros.
float a_of(int i, int k_quad, int q, int kk) {
  int k_place = (k_quad + q) * 4 + kk;
  if (LENGTH > 0) return (row_at[i] + (segment_start + k_place * k_pitch())).v;
  float v = (row_at[i] + (segment_start + in_segment(k_place) * k_pitch())).v;
  return is_in_segment(k_place) ? v : 0.0;
}
#endif


void place_b(Tile tile) {
  int zeros = quads(quads(k)) * 4;
  int first = IN_PANELS ? zeros + tile.column_quad * segments * quads(k) * 4 : tile.column_quad;
  tile_b = tile.b_base + first;
}

void seek(Segment segment) {
  seek_a(segment);
  segment_b = tile_b + segment.index * (IN_PANELS ? quads(k) * 4 : k) * K_APART;
}

void add_products(int k_quad) {
  QuadAt row = b + (segment_b + k_quad * 4 * K_APART);
  [[unroll]] for (int q = 0; q < STEP; q++) {
    [[unroll]] for (int kk = 0; kk < 4; kk += TOGETHER) {
      float columns_of_b[TOGETHER * COLUMNS];  // of a k its COLUMNS, then the next one's
      [[unroll]] for (int j = 0; j < TOGETHER * COLUMNS; j++) {
        int first = (q * 4 + kk + j / COLUMNS) * K_APART;
        columns_of_b[j] = of_lane(LanesAt(row + (first + LANE_QUADS * (j % COLUMNS))));
      }
      [[unroll]] for (int i = 0; i < ROWS; i++) {
        [[unroll]] for (int l = 0; l < TOGETHER; l++) {
          if (LENGTH > 0 && q * 4 + kk + l >= LENGTH) continue;
          float of_a = a_of(i, k_quad, q, kk + l);
          [[unroll]] for (int j = 0; j < COLUMNS; j++) {
            sums[i * COLUMNS + j] = fma(of_a, columns_of_b[l * COLUMNS + j], sums[i * COLUMNS + j]);
          }
        }
      }
    }
  }
}

#ifdef OPERANDS_patches_row
#define MAY_BE_EMPTY (IN_PHASES || (IN_LINE && !INSIDE))
#endif
#include "gemm/gemm_steps.glsl"

// The row of ones: the sums of B's columns. It has a tile of its own, the last. In panels, segments are whole quads.
void add_ones(Tile tile) {
  int row = IN_PANELS ? tile.k_begin * 4 : row_of_b(tile.k_begin);
  int left = (IN_PANELS ? tile.k_end * 4 : row_of_b(tile.k_end)) - row;
  do {
    [[unroll]] for (int e = 0; e < 4; e++) {
      QuadAt at = b + (tile_b + (e < left ? row + e : row) * K_APART);
      [[unroll]] for (int j = 0; j < COLUMNS; j++) {
        float v = of_lane(LanesAt(at + j * LANE_QUADS));
        sums[j] += e < left ? v : 0.0;
      }
    }
    row += 4;
    left -= 4;
  } while (left > 0);
}

int tiles_of_products() { return SUM_COLUMNS ? (rows + ROWS - 1) / ROWS : row_tiles(ROWS); }

// Tiles run in blocks of rows, and in a block those of the same columns one after the other: so a panel stays in a
// core's cache, and the block's part of A in the next one.
Tile panel_tile() {
  int tiles = tiles_of_products() + (SUM_COLUMNS ? 1 : 0);
  Tile tile = tile_in(tiles, PANEL_QUADS);
  int columns_of_tiles = column_tiles(PANEL_QUADS);
  int at = tile.row * columns_of_tiles + tile.column_quad / PANEL_QUADS;
  int block = at / (BLOCK * columns_of_tiles);
  int in_block = at - block * BLOCK * columns_of_tiles;
  int block_rows = min(tiles - block * BLOCK, BLOCK);
  int column_tile = in_block / block_rows;
  place_rows(tile, block * BLOCK + in_block - column_tile * block_rows, ROWS);
  tile.column_quad = column_tile * PANEL_QUADS;
  return tile;
}

// Four rows of the tile from the i-th on, of the j-th of this invocation's columns; 0 past the last.
vec4 sums_from(int i, int j) {
  vec4 v = vec4(0.0);
  [[unroll]] for (int e = 0; e < 4; e++) {
    if (i + e < ROWS) v[e] = sums[(i + e) * COLUMNS + j];
  }
  return v;
}

// The moments of the tile's rows, with their values as they will be read back.
void store_tile_moments(Tile tile, int j) {
  int count = min(tile.row_end - tile.row, ROWS);
  bool is_empty = WHOLE ? false : count <= 0;
  if (!FIND_MOMENTS || is_empty) return;
  // Differences from the first row are summed, so that the mean of a constant is the constant.
  float first = as_read(sums_from(0, j)).x;
  vec4 sum = vec4(0.0);
  [[unroll]] for (int i = 0; i < ROWS; i += 4) {
    sum += mix(vec4(0.0), as_read(sums_from(i, j)) - first, lessThan(ivec4(i, i + 1, i + 2, i + 3), ivec4(count)));
  }
  float mean = first + (sum.x + sum.y + sum.z + sum.w) / float(count);
  vec4 squares = vec4(0.0);
  [[unroll]] for (int i = 0; i < ROWS; i += 4) {
    vec4 difference = as_read(sums_from(i, j)) - mean;
    squares += mix(vec4(0.0), difference * difference, lessThan(ivec4(i, i + 1, i + 2, i + 3), ivec4(count)));
  }
  float sum_of_squares = squares.x + squares.y + squares.z + squares.w;
  store_moments(tile.row / ROWS, tile.column_quad + j * LANE_QUADS, mean, sum_of_squares);
}

// This invocation's bias of its j-th column.
float own_bias(Tile tile, int j) {
  float v = 0.0;
  [[unroll]] for (int q = 0; q < LANE_QUADS; q++) {
    vec4 quad = column_bias(tile, tile.column_quad + j * LANE_QUADS + q);
    [[unroll]] for (int e = 0; e < 4; e++) v = lane() == q * 4 + e ? quad[e] : v;
  }
  return v;
}

void store_rows(Tile tile) {
  [[unroll]] for (int first = 0; first < SUMS; first += 4) {
    ivec4 at = first + ivec4(0, 1, 2, 3);
    ivec4 tile_rows = tile.row + at / COLUMNS;
    vec4 v = vec4(0.0);
    [[unroll]] for (int e = 0; e < 4; e++) {
      if (first + e < SUMS) v[e] = sums[first + e];
      if (first + e >= SUMS) tile_rows[e] = tile.row_end;
    }
    store_parts(tile, tile_rows, tile.column_quad + at % COLUMNS * LANE_QUADS, v);
  }
}

// Where all columns are stored. Rows past the last have its sums (gemm_a.glsl) and are stored there, so that nothing
// depends on whether they are there: what lavapipe stores in a branch, it looks up and checks anew. No argument of
// an epilogue lies where its result is stored.
void store_whole_rows(Tile tile) {
  [[unroll]] for (int i = 0; i < ROWS; i++) {
    int row = min(tile.row + i, tile.row_end - 1);
    [[unroll]] for (int j = 0; j < COLUMNS; j++) {
      store_whole_part(tile, row, tile.column_quad + j * LANE_QUADS, sums[i * COLUMNS + j]);
    }
  }
}

void main() {
  result_lane = lane();
  Tile tile = panel_tile();
  bool of_ones = SUM_COLUMNS && tile.row == tiles_of_products() * ROWS;
  if (of_ones) tile.row = row_of_ones();
  if (SUM_COLUMNS && !of_ones) tile.row_end = min(tile.row_end, rows);
  place_a(tile);
  place_b(tile);
  [[unroll]] for (int j = 0; j < COLUMNS; j++) {
    float bias = own_bias(tile, j);
    [[unroll]] for (int i = 0; i < ROWS; i++) sums[i * COLUMNS + j] = bias;
  }
  if (of_ones) {
    add_ones(tile);
  } else {
    add_tile_products(tile);
  }
  if (WHOLE) {
    store_whole_rows(tile);
  } else {
    store_rows(tile);
  }
  [[unroll]] for (int j = 0; j < COLUMNS; j++) store_tile_moments(tile, j);
}

#endif
