// The left operand. Each invocation reads one or more positions of it with an ACursor:
//   A_ALONG_K   a quad holds four k of one row:      a_cursor(row),  a_load(cursor, quad of k)
//               the next row's, without a division:  a_cursor_after(cursor, row)
//   otherwise   a quad holds four rows of one k:     a_cursor(quad of rows),  a_load(cursor, k)
// after a_seek(cursor, segment_at(index of the segment)). Rows past the last read the last one again, and their results
// are not stored; k past the last gives zeros. A load is a_value() of what is at a_address(), which a kernel may call
// later.
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

#if defined(OPERANDS_row_row) || defined(OPERANDS_row_col)
// {rows, k}
#define A_ALONG_K

struct ACursor {
  int base;
};

ACursor a_cursor(Tile tile, int row) { return ACursor(tile.a_base + min(row, rows - 1) * a_pitch); }

ACursor a_cursor_after(ACursor cursor, Tile tile, int row) {
  return ACursor(cursor.base + (row < rows ? a_pitch : 0));
}

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

int a_address(ACursor cursor, int k_place) { return cursor.base + in_segment(k_place) * a_pitch; }

OPERAND a_value(ACursor cursor, int k_place, OPERAND v) {
  v = cursor.ones ? FIRST_ONE : v;
  return is_in_segment(k_place) ? v : OPERAND(0);
}

#elif defined(OPERANDS_patches_row) || defined(OPERANDS_patches_col)
// Images {n, height, width, channels}: a row of A is a position, k are the channels of the pixel under one tap.
#define A_ALONG_K
struct ACursor {
  ivec2 place;  // of the position: the pixel of a tap without a shift
  int start;    // address of that pixel
  int base;     // the pixel under the tap
  bool inside;
};

ACursor a_cursor(Tile tile, int row) {
  int position = min(row, rows - 1);
  if (IN_PHASES) position = min(row - tile.phase * phase_rows(), phase_rows() - 1);
  int line = position / grid.y;
  int n = line / grid.x;
  ivec2 at = ivec2(line - n * grid.x, position - line * grid.y);
  ivec2 place = IN_PHASES ? at : at * stride + offset;
  int pixel = n * image.x * image.y + place.x * image.y + place.y;
  return ACursor(place, tile.a_base + pixel * a_pitch, 0, false);
}

ACursor a_cursor_after(ACursor cursor, Tile tile, int row) {
  ivec2 apart = IN_PHASES ? ivec2(1) : stride;
  ivec2 origin = IN_PHASES ? ivec2(0) : offset;
  ivec2 end = grid * apart;
  bool is_there = row < (IN_PHASES ? (tile.phase + 1) * phase_rows() : rows);
  bool in_line = cursor.place.y + apart.y < end.y + origin.y;
  bool in_image = in_line || cursor.place.x + apart.x < end.x + origin.x;
  ivec2 place = cursor.place + ivec2(0, apart.y);
  int start = cursor.start + apart.y * a_pitch;
  place = in_line ? place : ivec2(place.x + apart.x, origin.y);
  start += in_line ? 0 : (apart.x * image.y - end.y) * a_pitch;
  place.x = in_image ? place.x : origin.x;
  start += in_image ? 0 : (image.x - end.x) * image.y * a_pitch;
  return ACursor(is_there ? place : cursor.place, is_there ? start : cursor.start, 0, false);
}

// From a position's pixel to that under a tap, in quads.
int a_offset(Segment segment) { return (segment.shift.x * image.y + segment.shift.y) * a_pitch; }

void a_seek(inout ACursor cursor, Segment segment) {
  ivec2 pixel = cursor.place + segment.shift;
  cursor.inside = all(lessThan(uvec2(pixel), uvec2(image)));  // negative numbers become large
  cursor.base = cursor.inside ? cursor.start + a_offset(segment) : 0;
}

int a_address(ACursor cursor, int k_quad) { return cursor.base + k_quad; }

OPERAND a_value(ACursor cursor, int k_quad, OPERAND v) { return cursor.inside ? v : OPERAND(0); }

#elif defined(OPERANDS_pixels_row)
// The same patches transposed: a row of A is a (tap, channel), k are the positions of one line of the grid.
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
  int tap_row = tap / kernel_width;
  ivec2 tap_place = ivec2(tap_row, tap - tap_row * kernel_width);
  return ACursor(tap_place * tap_step + offset, 0, channel, 0, is_of_ones(row_quad));
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
  return is_in_segment(k_place) ? v : OPERAND(0);
}

#endif

#ifndef OPERANDS_planes_row  // which only gemm_uniform.glsl has, with cursors of its own
OPERAND a_load(ACursor cursor, int k_place) { return a_value(cursor, k_place, A_QUAD(a_address(cursor, k_place))); }
#endif

// The index in its quad of the kk-th of four k of a row; indices from QUAD_ELEMENTS on are zero.
#ifdef A_ALONG_K
#define A_ELEMENT(kk, row) (kk)
#else
#define A_ELEMENT(kk, row) ((row) % 4)
#endif

#endif
