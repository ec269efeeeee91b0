// The products of mlp_tile.glsl, by its invocations: of EACH rows, DOWN apart, every one has a quad of columns. f32.
#ifndef HALFSTEP_MLP_PRODUCTS
#define HALFSTEP_MLP_PRODUCTS

layout(std430, binding = 1) readonly buffer Weights { vec4 weights[]; };
vec4 weights_at(uint at) { return weights[at]; }

const int EACH = 8;
layout(constant_id = 22) const int PART = 16;  // rows of a matrix in shared memory at a time
layout(constant_id = 23) const int DOWN = 8;
const int TILE = DOWN * EACH;
const int PITCH = QUADS + 1;  // quads of a row; one more avoids bank conflicts

shared vec4 values[TILE * PITCH];
shared vec4 part[PART * QUADS];
vec4 sums[EACH];

#define EACH_ROW(i) [[unroll]] for (int i = 0; i < EACH; i++)

int down() { return thread() / QUADS; }
int across() { return thread() % QUADS; }

void keep_value(int row, int quad, vec4 v) { values[row * PITCH + quad] = v; }
void finish_values() { barrier(); }
void clear_sums() { EACH_ROW(i) sums[i] = vec4(0.0); }

uint matrix_pitch(uint from_quads, uint to_quads) { return to_quads; }
uint matrix_place(uint at, uint pitch, uint from_quad, uint to_quad) { return at + 4u * from_quad * pitch + to_quad; }

void add_products(uint at, uint pitch, uint count) {
  int quads = (int(count) + 3) / 4;
  for (int begin = 0; begin < quads; begin += PART / 4) {
    int part_quads = min(PART / 4, quads - begin);
    barrier();
    for (int i = thread(); i < part_quads * 4 * QUADS; i += THREADS) {
      part[i] = weights[at + uint(4 * begin + i / QUADS) * pitch + uint(i % QUADS)];
    }
    barrier();
    for (int quad = 0; quad < part_quads; quad++) {
      vec4 w[4];
      [[unroll]] for (int k = 0; k < 4; k++) w[k] = part[(quad * 4 + k) * QUADS + across()];
      EACH_ROW(i) {
        vec4 v = values[(i * DOWN + down()) * PITCH + begin + quad];
        [[unroll]] for (int k = 0; k < 4; k++) sums[i] = fma(vec4(v[k]), w[k], sums[i]);
      }
    }
  }
}

// Not unrolled, and from a copy: see gemm/gemm_store.glsl.
#define FOR_SUMS(use)                      \
  {                                        \
    vec4 results[EACH];                    \
    EACH_ROW(i) results[i] = sums[i];      \
    for (int i = 0; i < EACH; i++) {       \
      int row = i * DOWN + down();         \
      int quad = across();                 \
      vec4 v = results[i];                 \
      use                                  \
    }                                      \
  }

#endif
