// How gemm_tile.glsl multiplies f16 two k at a time, with sums in f32: shared memory has pairs of numbers along k.
#ifndef HALFSTEP_GEMM_DOTS
#define HALFSTEP_GEMM_DOTS

// [pair of k][quad of rows or of columns]: the pairs of four rows or columns
shared uvec4 shared_a[2 * K_QUADS * PITCH];
shared uvec4 shared_b[2 * K_QUADS * PITCH];

// Where a device does this in one instruction, vk/shader/mixed_dots.h puts that in this place.
float added(float sum, uint a, uint b) { return sum + dot(unpackHalf2x16(a), unpackHalf2x16(b)); }

// Quads of rows or columns at two k, as pairs.
uvec4 paired(OPERAND at_first, OPERAND at_second) {
  return uvec4(bitfieldInsert(at_first.x, at_second.x, 16, 16), bitfieldInsert(at_second.x, at_first.x >> 16, 0, 16),
               bitfieldInsert(at_first.y, at_second.y, 16, 16), bitfieldInsert(at_second.y, at_first.y >> 16, 0, 16));
}

void keep_step() {
#ifdef A_ALONG_K
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    ivec2 at = A_PLACE(i);
    OPERAND kept = fetched_a(i);
    shared_a[at.y * 2 * PITCH + at.x / 4][at.x % 4] = kept.x;
    shared_a[(at.y * 2 + 1) * PITCH + at.x / 4][at.x % 4] = kept.y;
  }
#else
  [[unroll]] for (int i = 0; i < LOADS; i += 2) {
    ivec2 at = A_PLACE(i);
    shared_a[at.y / 2 * PITCH + at.x] = paired(fetched_a(i), fetched_a(i + 1));
  }
#endif
#ifdef B_ALONG_K
  [[unroll]] for (int i = 0; i < LOADS; i++) {
    ivec2 at = B_PLACE(i);
    OPERAND kept = fetched_b(i);
    shared_b[at.y * 2 * PITCH + at.x / 4][at.x % 4] = kept.x;
    shared_b[(at.y * 2 + 1) * PITCH + at.x / 4][at.x % 4] = kept.y;
  }
#else
  [[unroll]] for (int i = 0; i < LOADS; i += 2) {
    ivec2 at = B_PLACE(i);
    shared_b[at.y / 2 * PITCH + at.x] = paired(fetched_b(i), fetched_b(i + 1));
  }
#endif
}

void add_step(int row_quad, int column_quad) {
  for (int pair = 0; pair < 2 * K_QUADS; pair++) {
    uvec4 b_part[COLUMN_QUADS];
    [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) b_part[j] = shared_b[pair * PITCH + column_quad + j * ACROSS];
    [[unroll]] for (int i = 0; i < ROW_QUADS; i++) {
      uvec4 a_part = shared_a[pair * PITCH + row_quad + i * DOWN];
      [[unroll]] for (int e = 0; e < 4; e++) {
        [[unroll]] for (int j = 0; j < COLUMN_QUADS; j++) {
          [[unroll]] for (int c = 0; c < 4; c++) {
            sums[i * 4 + e][j][c] = added(sums[i * 4 + e][j][c], a_part[e], b_part[j][c]);
          }
        }
      }
    }
  }
}

#endif
