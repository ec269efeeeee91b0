// The products of attention_tile.glsl, by matrix units: of numbers in f16, with sums in f32. Weights are rounded to f16
// for them. Both operands lie along k in shared memory, as matrix units read them with the fewest loads: other rows that
// are summed are transposed. The subgroups share the fragments of a product of TILE by TILE, which comes back through
// shared memory, since the driver decides which elements of a fragment an invocation holds.
#ifndef HALFSTEP_ATTENTION_UNITS
#define HALFSTEP_ATTENTION_UNITS

layout(constant_id = 11) const int FRAGMENT_ROWS = 16;
layout(constant_id = 12) const int FRAGMENT_COLUMNS = 16;
layout(constant_id = 13) const int FRAGMENT_K = 16;
layout(constant_id = 14) const int SUBGROUPS = 2;  // of a workgroup

const int ACROSS = TILE / FRAGMENT_COLUMNS;
const int FRAGMENTS = TILE / FRAGMENT_ROWS * ACROSS;
const int FRAGMENTS_EACH = (FRAGMENTS + SUBGROUPS - 1) / SUBGROUPS;
const int PITCH = SIDE + 2;           // quads of a row; 16 bytes more avoid bank conflicts
const int PRODUCT_PITCH = SIDE + 1;

#define FRAGMENT(type, rows, columns, use) coopmat<type, gl_ScopeSubgroup, rows, columns, use>

shared f16vec4 own_part[TILE * PITCH];
shared f16vec4 other_part[TILE * PITCH];
shared vec4 product[TILE * PRODUCT_PITCH];
FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator) found[FRAGMENTS_EACH];

// Runs `use` with `i`, and `row` and `column` of the fragment that found[i] is.
#define FOR_FRAGMENTS(use)                                                   \
  [[unroll]] for (int i = 0; i < FRAGMENTS_EACH; i++) {                      \
    int fragment = int(gl_SubgroupID) * FRAGMENTS_EACH + i;                  \
    int row = fragment / ACROSS * FRAGMENT_ROWS;                             \
    int column = fragment % ACROSS * FRAGMENT_COLUMNS;                       \
    if (fragment < FRAGMENTS) { use }                                        \
  }

void keep_own(vec4 v[4]) {
  FOUR(j) own_part[(down() * 4 + j) * PITCH + across()] = f16vec4(v[j]);
}
void keep_other(vec4 v[4]) {
  FOUR(j) other_part[(down() * 4 + j) * PITCH + across()] = f16vec4(v[j]);
}
void keep_summed(vec4 v[4]) {
  FOUR(e) other_part[(across() * 4 + e) * PITCH + down()] = f16vec4(v[0][e], v[1][e], v[2][e], v[3][e]);
}

void clear_found() {
  [[unroll]] for (int i = 0; i < FRAGMENTS_EACH; i++) {
    found[i] = FRAGMENT(float, FRAGMENT_ROWS, FRAGMENT_COLUMNS, gl_MatrixUseAccumulator)(0.0);
  }
}
void add_found() {
  for (int kk = 0; kk < TILE; kk += FRAGMENT_K) {
    FOR_FRAGMENTS({
      FRAGMENT(float16_t, FRAGMENT_ROWS, FRAGMENT_K, gl_MatrixUseA) a;
      FRAGMENT(float16_t, FRAGMENT_K, FRAGMENT_COLUMNS, gl_MatrixUseB) b;
      coopMatLoad(a, own_part, row * PITCH + kk / 4, PITCH, gl_CooperativeMatrixLayoutRowMajor);
      coopMatLoad(b, other_part, column * PITCH + kk / 4, PITCH, gl_CooperativeMatrixLayoutColumnMajor);
      found[i] = coopMatMulAdd(a, b, found[i]);
    })
  }
}
void fetch_found(out vec4 v[4]) {
  FOR_FRAGMENTS({
    coopMatStore(found[i], product, row * PRODUCT_PITCH + column / 4, PRODUCT_PITCH,
                 gl_CooperativeMatrixLayoutRowMajor);
  })
  barrier();
  FOUR(j) v[j] = product[(down() * 4 + j) * PRODUCT_PITCH + across()];
}

void start_products(out vec4 products[4]) {
  clear_found();
}
void add_row_products(inout vec4 products[4]) { add_found(); }
void finish_products(inout vec4 products[4]) { fetch_found(products); }

void add_weighted_rows(inout vec4 sums[4]) {
  vec4 added[4];
  clear_found();
  add_found();
  fetch_found(added);
  FOUR(j) sums[j] += added[j];
}

#endif
