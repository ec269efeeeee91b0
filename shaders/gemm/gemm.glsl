// GEMM: C(m, n) = sum over k of A(m, k) B(k, n), for matrices and convolutions, which differ only in how A and B are
// addressed (gemm_a.glsl, gemm_b.glsl). One of several kernels (gemm_subgroup.glsl, gemm_thin.glsl, gemm_runs.glsl,
// gemm_tile.glsl, gemm_uniform.glsl, gemm_outer.glsl, gemm_cooperative.glsl) computes tiles of C, and gemm_store.glsl
// writes them.
//
// All operands are arrays of quads, four elements along the last axis. k runs over `segments` segments of `k` elements
// each, four at a time: matrices have one segment, a convolution one per tap, and a convolution's weight gradient one
// per row of the output.
#ifndef HALFSTEP_GEMM
#define HALFSTEP_GEMM

// Drawing noise for every row would be most of the code; if needed, ops/gemm/gemm.cpp lets gemm_reduce.comp round.
#define NEAREST_ONLY
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint EDGE = 0u;  // how the binding of that name is used
layout(constant_id = 2) const bool PARTIALS_IN_F16 = false;
layout(constant_id = 3) const int TAP_STRIDE_Y = 0;  // see gemm_taps.glsl; 0: not IN_PHASES
// Elements of a quad of A that are not padding: fewer than four if images have fewer channels.
layout(constant_id = 4) const int QUAD_ELEMENTS = 4;
// Of which operands two adjacent quads of 16-bit elements may be read as one, as PAIR_OF_A and PAIR_OF_B.
layout(constant_id = 5) const uint PAIRS = 0u;
layout(constant_id = 6) const int TAP_STRIDE_X = 0;
layout(constant_id = 7) const bool WHOLE_QUADS = false;  // k is a multiple of four: no quad has k past the last
const bool IN_PHASES = TAP_STRIDE_Y != 0;

#ifdef ADDRESSED
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer QuadAt { vec4 v; };
#endif

// ops/gemm/gemm.cpp has the same struct. Lengths and strides are in elements unless noted.
layout(push_constant) uniform Push {
#ifdef ADDRESSED
  QuadAt a;
  QuadAt b;
#endif
  int rows;           // of A; a weight gradient's from pixels are padded, taps x channels in whole quads
  int columns;        // of C
  int k;              // elements of a segment
  int segments;
  int splits;         // number of parts of k, each with its own C
  int split_quads;    // quads of k per part
  int groups;         // workgroups that have a tile
  int a_pitch;        // quads between rows, for each of the three
  int b_pitch;
  int c_pitch;
  int a_batch;        // quads between batches, or between groups of channels
  int b_batch;
  int c_batch;
  int c_split;        // quads between parts of k
  int channels;       // of the images; used if A's rows are (tap, channel)
  int kernel_width;   // this and all below: convolutions only
  ivec2 grid;         // {height, width} of the positions that patches are taken at; IN_PHASES, of each phase
  ivec2 image;        // {height, width} of the images that they are taken from
  ivec2 stride;       // a patch's pixel is position * stride + tap * tap_step + offset, and 0 outside the image;
  ivec2 tap_step;     // IN_PHASES, (position + tap * tap_step + offset) / stride, without a remainder
  ivec2 offset;
  ivec2 c_image;      // IN_PHASES: {height, width} of C's images
};

// A and B are used as numbers, or as they are stored, if a kernel copies them first.
#ifdef OPERANDS_AS_STORED
#define OPERAND QUAD
#else
#define OPERAND vec4
#endif

#if defined(TEXELS)
// Read through texel buffers, where those are faster: a texel is a quad as it is stored.
#ifdef NARROW
layout(binding = 0) uniform usamplerBuffer a;
layout(binding = 1) uniform usamplerBuffer b;
#define A_QUAD(at) from_quad(texelFetch(a, at).xy)
#define B_QUAD(at) from_quad(texelFetch(b, at).xy)
#else
layout(binding = 0) uniform samplerBuffer a;
layout(binding = 1) uniform samplerBuffer b;
#define A_QUAD(at) texelFetch(a, at)
#define B_QUAD(at) texelFetch(b, at)
#endif
#elif defined(ADDRESSED)
#define A_QUAD(at) a[at].v
#define B_QUAD(at) b[at].v
#else
layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) readonly buffer B { QUAD b[]; };
#ifdef OPERANDS_AS_STORED
#define A_QUAD(at) a[at]
#define B_QUAD(at) b[at]
#ifdef NARROW
layout(std430, binding = 0) readonly buffer PairsOfA { uvec4 pairs_of_a[]; };
layout(std430, binding = 1) readonly buffer PairsOfB { uvec4 pairs_of_b[]; };
#define PAIR_OF_A(at) pairs_of_a[(at) >> 1]
#define PAIR_OF_B(at) pairs_of_b[(at) >> 1]
#endif
#else
#define A_QUAD(at) from_quad(a[at])
#define B_QUAD(at) from_quad(b[at])
#endif
#endif

// An additional operand: a bias for each column of C, or the result for the sums of B's columns, or the result for C's
// column moments (gemm_moments.glsl). The sums are computed as one more row of C, from a row of ones after the last
// quad of A's rows; if k is split into parts, they are also stored as such a row.
layout(std430, binding = 3) buffer Edge { QUAD edge[]; };
const bool ADD_BIAS = EDGE == 1u;
const bool SUM_COLUMNS = EDGE == 2u || EDGE == 3u;
const bool SUMS_APART = EDGE == 2u;

int quads(int elements) { return (elements + 3) >> 2; }

// Whether a quad's k is in the segment, and the nearest one that is.
bool is_in_segment(int k_place) { return WHOLE_QUADS || k_place < k; }
int in_segment(int k_place) { return WHOLE_QUADS ? k_place : min(k_place, k - 1); }

// The row of B at a quad of k, counted over all segments.
int row_of_b(int k_at) {
  int segment = k_at / quads(k);
  return segment * k + min((k_at - segment * quads(k)) * 4, k);
}

// The row of A that sums the columns of B.
int row_of_ones() { return quads(rows) * 4; }

#include "gemm/gemm_taps.glsl"

// The work of one workgroup.
struct Tile {
  int row;         // first row of A
  int row_end;     // rows from here on are not stored
  int phase;       // 0 if not IN_PHASES
  int column_quad; // first quad of columns
  int k_begin;     // quads of k, counted over all of its segments
  int k_end;
  int a_base;      // start of its batch, in quads
  int b_base;
  int c_base;
  int edge_base;
};

int column_tiles(int tile_quads) { return (quads(columns) + tile_quads - 1) / tile_quads; }

// Tiles that the rows of A make, where none has rows of two phases.
int row_tiles(int tile_rows) {
#ifdef TAPS
  if (IN_PHASES) return phases().x * phases().y * ((phase_rows() + tile_rows - 1) / tile_rows);
#endif
  return ((SUM_COLUMNS ? row_of_ones() + 1 : rows) + tile_rows - 1) / tile_rows;
}

// Places a tile at the row tile of that number.
void place_rows(inout Tile tile, int row_tile, int tile_rows) {
  tile.phase = 0;
  tile.row = row_tile * tile_rows;
#ifdef TAPS
  if (IN_PHASES) {
    int phase_tiles = (phase_rows() + tile_rows - 1) / tile_rows;
    tile.phase = row_tile / phase_tiles;
    tile.row = tile.phase * phase_rows() + (row_tile - tile.phase * phase_tiles) * tile_rows;
    tile.row_end = min(tile.row_end, (tile.phase + 1) * phase_rows());
    place_taps(tile.phase);
  }
#endif
  tile.k_end = min(tile.k_begin + split_quads, tile_segments() * quads(k));
}

// The workgroup's tile, with the number of its row tile of `row_tiles` in place of its rows.
Tile tile_in(int row_tiles, int tile_quads) {
  int group = int(linear_group());
  bool idle = group >= groups;  // the last ones, if the grid has more groups than tiles
  int rest = idle ? 0 : group;
  int column_tile = rest % column_tiles(tile_quads);
  rest /= column_tiles(tile_quads);
  int row_tile = rest % row_tiles;
  rest /= row_tiles;
  int split = rest % splits;
  int batch = rest / splits;
  Tile tile;
  tile.row = row_tile;
  tile.row_end = idle ? 0 : SUM_COLUMNS ? row_of_ones() + 1 : rows;
  tile.column_quad = column_tile * tile_quads;
  tile.k_begin = split * split_quads;
  tile.k_end = min(tile.k_begin + split_quads, segments * quads(k));
  tile.a_base = batch * a_batch;
  tile.b_base = batch * b_batch;
  tile.c_base = batch * c_batch + split * c_split;
  tile.edge_base = batch * c_batch;
  tile.phase = 0;
  return tile;
}

Tile workgroup_tile(int tile_rows, int tile_quads) {
  Tile tile = tile_in(row_tiles(tile_rows), tile_quads);
  place_rows(tile, tile.row, tile_rows);
  return tile;
}

#endif
