// The left operand. Each invocation reads one or more positions of it with an ACursor:
//   A_ALONG_K   a quad holds four k of one row:      a_cursor(row),  a_load(cursor, quad of k)
//   otherwise   a quad holds four rows of one k:     a_cursor(quad of rows),  a_load(cursor, k)
// after a_seek(cursor, segment_at(index of the segment)). Rows past the last read the last one again, and their results are not stored; k past
// the last gives zeros. A load is a_value() of what is at a_address(), which a kernel may call later.
#ifndef HALFSTEP_GEMM_A
#define HALFSTEP_GEMM_A

#include "gemm/gemm.glsl"

// Whether the quad of rows starts with the row of ones; its other rows are unused.
bool is_of_ones(int row_quad) { return SUM_COLUMNS && row_quad >= quads(rows); }
#if defined(OPERANDS_AS_STORED) && defined(NARROW)
#define FIRST_ONE uvec2(ONE_BITS, 0u)
#else
#define FIRST_ONE vec4(1.0, 0.0, 0.0, 0.0)
#endif

// A segment of k, by its index and its place: the tap that it is, {row, column}, or the line of positions, {image, row}.
struct Segment {
  int index;
  ivec2 place;
};

#if defined(OPERANDS_patches_row) || defined(OPERANDS_patches_col)
#define PATCHES
int places_in_row() { return kernel_width; }
#elif defined(OPERANDS_pixels_row)
#define PATCHES
int places_in_row() { return grid.x; }
#endif

Segment segment_at(int index) {
#ifdef PATCHES
  int row = index / places_in_row();
  return Segment(index, ivec2(row, index - row * places_in_row()));
#else
  return Segment(index, ivec2(0));
#endif
}

// The one `count` segments later, in the same row or at the start of the next. Without a division, which software
// drivers make for each lane.
Segment segment_after(Segment segment, int count) {
  segment.index += count;
#ifdef PATCHES
  bool in_row = segment.place.y + count < places_in_row();
  segment.place = in_row ? segment.place + ivec2(0, count) : ivec2(segment.place.x + 1, 0);
#endif
  return segment;
}

#if defined(OPERANDS_row_row) || defined(OPERANDS_row_col)
// {rows, k}
#define A_ALONG_K

struct ACursor {
  int base;
};

ACursor a_cursor(Tile tile, int row) { return ACursor(tile.a_base + min(row, rows - 1) * a_pitch); }

void a_seek(inout ACursor cursor, Segment segment) {}

int a_address(ACursor cursor, int k_quad) { return cursor.base + k_quad; }

OPERAND a_value(ACursor cursor, int k_quad, OPERAND v) { return v; }

#elif defined(OPERANDS_col_row) || defined(OPERANDS_col_col)
// {k, rows}
struct ACursor {
  int base;
  bool ones;
};

ACursor a_cursor(Tile tile, int row_quad) {
  return ACursor(tile.a_base + min(row_quad, quads(rows) - 1), is_of_ones(row_quad));
}

void a_seek(inout ACursor cursor, Segment segment) {}

int a_address(ACursor cursor, int k_place) { return cursor.base + min(k_place, k - 1) * a_pitch; }

OPERAND a_value(ACursor cursor, int k_place, OPERAND v) {
  v = cursor.ones ? FIRST_ONE : v;
  return k_place < k ? v : OPERAND(0);
}

#elif defined(OPERANDS_patches_row) || defined(OPERANDS_patches_col)
// Images {n, height, width, channels}: a row of A is a position, k are the channels of the pixel under one tap.
#define A_ALONG_K
#include "conv/patches.glsl"

struct ACursor {
  ivec2 place;  // position times stride, plus offset: the first tap's pixel, or if DIVIDED, that times stride
  int start;    // address of that pixel, or if DIVIDED, of its image
  int base;     // the pixel under the tap
  bool inside;
};

ACursor a_cursor(Tile tile, int row) {
  int position = min(row, rows - 1);
  int line = position / grid.y;
  int n = line / grid.x;
  ivec2 at = ivec2(line - n * grid.x, position - line * grid.y);
  ivec2 place = (DIVIDED ? at : at * stride) + offset;
  int pixel = n * image.x * image.y + (DIVIDED ? 0 : place.x * image.y + place.y);
  return ACursor(place, tile.a_base + pixel * a_pitch, 0, false);
}

void a_seek(inout ACursor cursor, Segment segment) {
  ivec2 shift = segment.place * tap_step;
  ivec2 pixel = pixel_at(cursor.place + shift, cursor.inside);
  if (!DIVIDED) pixel = shift;  // the same for all cursors
  cursor.base = cursor.inside ? cursor.start + (pixel.x * image.y + pixel.y) * a_pitch : 0;
}

int a_address(ACursor cursor, int k_quad) { return cursor.base + k_quad; }

OPERAND a_value(ACursor cursor, int k_quad, OPERAND v) { return cursor.inside ? v : OPERAND(0); }

#elif defined(OPERANDS_pixels_row)
// The same patches transposed: a row of A is a (tap, channel), k are the positions of one line of the grid.
#include "conv/patches.glsl"

struct ACursor {
  ivec2 place;  // the tap's shift
  int base;     // the quad of channels; later also includes the line of pixels
  int channel;
  int width;    // of the line of pixels; 0 if it is outside the image
  bool ones;
};

ACursor a_cursor(Tile tile, int row_quad) {
  int channel_quads = quads(channels);
  int at = min(row_quad, quads(rows) - 1);
  int tap = at / channel_quads;
  int channel = tile.a_base + at - tap * channel_quads;
  return ACursor(tap_place(tap) * tap_step + offset, 0, channel, 0, is_of_ones(row_quad));
}

void a_seek(inout ACursor cursor, Segment segment) {
  int y = segment.place.y * stride.x + cursor.place.x;
  bool inside = uint(y) < uint(image.x);  // negative numbers become large
  cursor.width = inside ? image.y : 0;
  cursor.base = cursor.channel + (segment.place.x * image.x + (inside ? y : 0)) * image.y * a_pitch;
}

int a_column(ACursor cursor, int k_place) { return k_place * stride.y + cursor.place.y; }

bool a_is_inside(ACursor cursor, int k_place) { return uint(a_column(cursor, k_place)) < uint(cursor.width); }

int a_address(ACursor cursor, int k_place) {
  return cursor.base + (a_is_inside(cursor, k_place) ? a_column(cursor, k_place) * a_pitch : 0);
}

OPERAND a_value(ACursor cursor, int k_place, OPERAND v) {
  v = a_is_inside(cursor, k_place) ? v : OPERAND(0);
  v = cursor.ones ? FIRST_ONE : v;
  return k_place < k ? v : OPERAND(0);
}

#endif

OPERAND a_load(ACursor cursor, int k_place) { return a_value(cursor, k_place, A_QUAD(a_address(cursor, k_place))); }

// The index in its quad of the kk-th of four k of a row; indices from QUAD_ELEMENTS on are zero.
#ifdef A_ALONG_K
#define A_ELEMENT(kk, row) (kk)
#else
#define A_ELEMENT(kk, row) ((row) % 4)
#endif

#endif
