// The products of mlp_tile.glsl, by matrix units: of numbers in f16, with sums in f32. A subgroup has DOWN fragments below
// each other of rows of its own, with all of their columns. Both operands lie along the sum in shared memory, as matrix units
// read them with the fewest loads, so a matrix is packed by its result's columns. The driver decides which elements of a
// fragment an invocation holds, so sums come back through shared memory.
#ifndef HALFSTEP_MLP_UNITS
#define HALFSTEP_MLP_UNITS

layout(constant_id = 22) const int PART = 32;  // columns of the values at a time
layout(constant_id = 23) const int DOWN = 2;
layout(constant_id = 24) const int FRAGMENT_ROWS = 16;
layout(constant_id = 25) const int FRAGMENT_COLUMNS = 16;
layout(constant_id = 26) const int FRAGMENT_K = 16;
layout(constant_id = 27) const int SUBGROUPS = 4;  // of a workgroup

layout(std430, binding = 1) readonly buffer Weights { QUAD weights[]; };
vec4 weights_at(uint at) { return from_quad(weights[at]); }

const int OWN_ROWS = DOWN * FRAGMENT_ROWS;
const int TILE = SUBGROUPS * OWN_ROWS;
const int ACROSS = 4 * QUADS / FRAGMENT_COLUMNS;
const int FRAGMENT_QUADS = FRAGMENT_COLUMNS / 4;
const int PITCH = QUADS + 2;  // quads of a row; 16 bytes more avoid bank conflicts
const int PART_QUADS = PART / 4;
const int PART_PITCH = PART_QUADS + 2;

#define FRAGMENT(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, use>

shared f16vec4 values[TILE * PITCH];
shared f16vec4 part[4 * QUADS * PART_PITCH];
shared vec4 results[TILE * FRAGMENT_QUADS];  // one column of fragments
FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator) sums[DOWN * ACROSS];

f16vec4 halves(uvec2 bits) { return f16vec4(unpackFloat2x16(bits.x), unpackFloat2x16(bits.y)); }

void keep_value(int row, int quad, vec4 v) { values[row * PITCH + quad] = f16vec4(v); }
// All that a subgroup computes from its rows of values is in its sums by then.
void finish_values() { subgroupBarrier(); }
void clear_sums() {
  [[unroll]] for (int i = 0; i < DOWN * ACROSS; i++) {
    sums[i] = FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator)(0.0);
  }
}

uint matrix_pitch(uint from_quads, uint to_quads) { return from_quads; }
uint matrix_place(uint at, uint pitch, uint from_quad, uint to_quad) { return at + 4u * to_quad * pitch + from_quad; }

void add_products(uint at, uint pitch, uint count) {
  int first = int(gl_SubgroupID) * OWN_ROWS;
  for (int begin = 0; 4 * begin < int(count); begin += PART_QUADS) {
    barrier();
    for (int i = thread(); i < 4 * QUADS * PART_QUADS; i += THREADS) {
      int column = i / PART_QUADS;
      int quad = i % PART_QUADS;
      part[column * PART_PITCH + quad] = halves(weights[at + uint(column) * pitch + uint(begin + quad)]);
    }
    barrier();
    for (int k = 0; k < 4 * PART_QUADS; k += FRAGMENT_K) {
      FRAGMENT(float16_t, FRAGMENT_ROWS, FRAGMENT_K, gl_MatrixUseA) a[DOWN];
      [[unroll]] for (int i = 0; i < DOWN; i++) {
        coopMatLoad(a[i], values, (first + i * FRAGMENT_ROWS) * PITCH + begin + k / 4, PITCH,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (int j = 0; j < ACROSS; j++) {
        FRAGMENT(float16_t, FRAGMENT_K, FRAGMENT_COLUMNS, gl_MatrixUseB) b;
        coopMatLoad(b, part, j * FRAGMENT_COLUMNS * PART_PITCH + k / 4, PART_PITCH,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (int i = 0; i < DOWN; i++) {
          sums[i * ACROSS + j] = coopMatMulAdd(a[i], b, sums[i * ACROSS + j]);
        }
      }
    }
  }
}

#define FOR_SUMS(use)                                                                                               \
  {                                                                                                                 \
    int own = int(gl_SubgroupID) * OWN_ROWS;                                                                        \
    [[unroll]] for (int j = 0; j < ACROSS; j++) {                                                                   \
      [[unroll]] for (int i = 0; i < DOWN; i++) {                                                                   \
        coopMatStore(sums[i * ACROSS + j], results, (own + i * FRAGMENT_ROWS) * FRAGMENT_QUADS, FRAGMENT_QUADS,     \
                     gl_CooperativeMatrixLayoutRowMajor);                                                           \
      }                                                                                                             \
      subgroupBarrier();                                                                                            \
      for (int i = int(gl_SubgroupInvocationID); i < OWN_ROWS * FRAGMENT_QUADS; i += int(gl_SubgroupSize)) {        \
        int row = own + i / FRAGMENT_QUADS;                                                                         \
        int quad = j * FRAGMENT_QUADS + i % FRAGMENT_QUADS;                                                         \
        vec4 v = results[own * FRAGMENT_QUADS + i];                                                                 \
        use                                                                                                         \
      }                                                                                                             \
      subgroupBarrier();                                                                                            \
    }                                                                                                               \
  }

#endif
