// The right operand. Each invocation reads positions of it with a BCursor:
//   B_ALONG_K   a quad holds four k of one column:   b_cursor(column),  b_load(cursor, quad of k)
//   otherwise   a quad holds four columns of one k:  b_cursor(quad of columns),  b_load(cursor, k)
// after b_seek(cursor, segment). Columns past the last read the last one again, and are not stored. k past the last
// gives zeros, as of A: a zero of one operand alone would make NaN of the other's infinity. A load is b_value() of what
// is at b_address(), which a kernel may call later.
#ifndef HALFSTEP_GEMM_B
#define HALFSTEP_GEMM_B

#include "gemm/gemm.glsl"

struct BCursor {
  int start;
  int base;
};

#if defined(OPERANDS_row_col) || defined(OPERANDS_col_col) || defined(OPERANDS_patches_col)
// {segments, columns, k}
#define B_ALONG_K

BCursor b_cursor(Tile tile, int column) {
  int start = tile.b_base + min(column, columns - 1) * b_pitch;
  return BCursor(start, start);
}

void b_seek(inout BCursor cursor, int segment) { cursor.base = cursor.start + segment * columns * b_pitch; }

int b_address(BCursor cursor, int k_quad) { return cursor.base + k_quad; }

OPERAND b_value(int k_quad, OPERAND v) { return v; }

#else
// {segments, k, columns}
BCursor b_cursor(Tile tile, int column_quad) {
  int start = tile.b_base + min(column_quad, quads(columns) - 1);
  return BCursor(start, start);
}

void b_seek(inout BCursor cursor, int segment) { cursor.base = cursor.start + segment * k * b_pitch; }

int b_address(BCursor cursor, int k_place) { return cursor.base + in_segment(k_place) * b_pitch; }

OPERAND b_value(int k_place, OPERAND v) { return is_in_segment(k_place) ? v : OPERAND(0); }

#endif

OPERAND b_load(BCursor cursor, int k_place) { return b_value(k_place, B_QUAD(b_address(cursor, k_place))); }

#endif
