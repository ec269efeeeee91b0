// Each invocation has ROWS rows of its own, with their sums, in registers, and all invocations of a workgroup go over
// the same other rows at the same time: so nothing is exchanged but what they load. For software drivers, which load a
// row once for the ROWS of all invocations of a subgroup, and keep registers in a cache.
#ifndef HALFSTEP_ATTENTION_ROWS
#define HALFSTEP_ATTENTION_ROWS

const int ROWS = 2;  // divides four
const int TILE = 8;  // other rows at a time

vec4 own_c[ROWS][C_QUADS];
#ifndef PASS_forward
vec4 own_d[ROWS][D_QUADS];
vec4 sums_c[ROWS][C_QUADS];
#endif
#ifndef PASS_queries
vec4 sums_d[ROWS][D_QUADS];
#endif

// One number for each own row and each of a tile's others.
struct Tile {
  float at[ROWS][TILE];
};

void set(inout Tile tile, int r, int other, float v) {
  [[unroll]] for (int j = 0; j < TILE; j++) tile.at[r][j] = j == other ? v : tile.at[r][j];
}
float get(Tile tile, int r, int other) {
  float v = tile.at[r][0];
  [[unroll]] for (int j = 1; j < TILE; j++) v = j == other ? tile.at[r][j] : v;
  return v;
}

// Runs `use` with `v`, each quad of the other row that starts at quad `start` of `rows`, and its number q.
#define FOR_QUADS(QUADS, rows, start, use)    \
  [[unroll]] for (int q = 0; q < QUADS; q++) { \
    vec4 v = from_quad(rows[(start) + uint(q)]); \
    use                                       \
  }

#define FOR_ROWS [[unroll]] for (int r = 0; r < ROWS; r++)

// Scores of the own rows from `own` on with the others from `other` on, and dy . v if `products`.
void find_scores(Head head, uint own, uint other, out Tile scores, out Tile products) {
  FOR_ROWS [[unroll]] for (int j = 0; j < TILE; j++) {
    scores.at[r][j] = 0.0;
    products.at[r][j] = 0.0;
  }
  for (int j = 0; j < TILE; j++) {
    uint row = other_head(head) + min(other + uint(j), other_count() - 1u);
    vec4 sums[ROWS];
    FOR_ROWS sums[r] = vec4(0.0);
    FOR_QUADS(C_QUADS, OTHER_C, row * uint(C_QUADS), FOR_ROWS sums[r] = fma(own_c[r][q], v, sums[r]);)
    FOR_ROWS set(scores, r, j, sum_of(sums[r]));
#ifndef PASS_forward
    FOR_ROWS sums[r] = vec4(0.0);
    FOR_QUADS(D_QUADS, OTHER_D, row * uint(D_QUADS), FOR_ROWS sums[r] = fma(own_d[r][q], v, sums[r]);)
    FOR_ROWS set(products, r, j, sum_of(sums[r]));
#endif
  }
  FOR_ROWS [[unroll]] for (int j = 0; j < TILE; j++) {
    uint own_row = own + uint(r);
    uint other_row = other + uint(j);
    uint query = QUERY(own_row, other_row);
    uint key = KEY(own_row, other_row);
    // Without branches: SwiftShader takes minutes and gigabytes to compile so many loads under conditions of their own.
    if (MASK != 0u) scores.at[r][j] += mask_at(head, min(query, queries - 1u), min(key, keys - 1u));
    bool seen = sees(head, query, key) && own_row < own_count();
    scores.at[r][j] = seen ? scores.at[r][j] : minus_infinity();
  }
}

// What dropout multiplies the weights by.
void find_factors(Head head, uint own, uint other, out Tile factors) {
#ifdef PASS_keys
  [[unroll]] for (int j = 0; j < TILE; j++) {
    vec4 four = kept_factors(head, other + uint(j), own);
    FOR_ROWS factors.at[r][j] = four[(own + uint(r)) % 4u];
  }
#else
  FOR_ROWS [[unroll]] for (int j = 0; j < TILE; j += 4) {
    vec4 four = kept_factors(head, own + uint(r), other + uint(j));
    [[unroll]] for (int e = 0; e < 4; e++) factors.at[r][j + e] = four[e];
  }
#endif
}

// Adds the other rows from `other` on, times their weights, to the sums.
#define ADD_ROWS(sums, weights, QUADS, rows)                                                                \
  {                                                                                                         \
    vec4 added[ROWS][QUADS];                                                                                \
    FOR_ROWS [[unroll]] for (int q = 0; q < QUADS; q++) added[r][q] = vec4(0.0);                            \
    for (int j = 0; j < TILE; j++) {                                                                        \
      uint row = other_head(head) + min(other + uint(j), other_count() - 1u);                               \
      float weight[ROWS];                                                                                   \
      FOR_ROWS weight[r] = get(weights, r, j);                                                              \
      FOR_QUADS(QUADS, rows, row * uint(QUADS), FOR_ROWS added[r][q] = fma(vec4(weight[r]), v, added[r][q]);) \
    }                                                                                                       \
    FOR_ROWS [[unroll]] for (int q = 0; q < QUADS; q++) sums[r][q] += added[r][q];                          \
  }

#ifdef PASS_forward
float largest[ROWS];
float total[ROWS];

void add_tile(Head head, uint own, uint other) {
  Tile weights, unused, factors;
  find_scores(head, own, other, weights, unused);
  FOR_ROWS {
    float top = largest[r];
    [[unroll]] for (int j = 0; j < TILE; j++) top = max(top, weights.at[r][j]);
    // While all that was seen is minus infinity, nothing is subtracted from it.
    float base = top == minus_infinity() ? 0.0 : top;
    float shrink = exp_or_nan(largest[r] - base);
    largest[r] = top;
    float sum = 0.0;
    [[unroll]] for (int j = 0; j < TILE; j++) {
      weights.at[r][j] = exp_or_nan(weights.at[r][j] - base);
      sum += weights.at[r][j];
    }
    total[r] = fma(total[r], shrink, sum);
    [[unroll]] for (int q = 0; q < D_QUADS; q++) sums_d[r][q] *= shrink;
  }
  if (DROPOUT) {
    find_factors(head, own, other, factors);
    FOR_ROWS [[unroll]] for (int j = 0; j < TILE; j++) weights.at[r][j] *= factors.at[r][j];
  }
  ADD_ROWS(sums_d, weights, D_QUADS, OTHER_D)
}
#else
float delta[ROWS];  // of the own queries

void add_tile(Head head, uint own, uint other) {
  Tile weights, gradients, factors;
  find_scores(head, own, other, weights, gradients);
  if (DROPOUT) find_factors(head, own, other, factors);
  FOR_ROWS [[unroll]] for (int j = 0; j < TILE; j++) {
    uint query = min(QUERY(own + uint(r), other + uint(j)), queries - 1u);
    uint at = statistic_at(head, query);
    float p = exp_or_nan(weights.at[r][j] - largest_of[at]) * inverse_total_of[at];
    float kept = DROPOUT ? factors.at[r][j] : 1.0;
#ifdef PASS_keys
    gradients.at[r][j] = p * (gradients.at[r][j] * kept - delta_of[at]);
#else
    gradients.at[r][j] = p * (gradients.at[r][j] * kept - delta[r]);
#endif
    weights.at[r][j] = p * kept;
  }
  ADD_ROWS(sums_c, gradients, C_QUADS, OTHER_C)
#ifdef PASS_keys
  ADD_ROWS(sums_d, weights, D_QUADS, OTHER_D)
#endif
}
#endif

void load_own(Head head, uint own) {
  FOR_ROWS {
    uint row = own_head(head) + min(own + uint(r), own_count() - 1u);
    [[unroll]] for (int q = 0; q < C_QUADS; q++) {
      own_c[r][q] = from_quad(OWN_C[row * uint(C_QUADS) + uint(q)]) * scale;
    }
#ifndef PASS_forward
    [[unroll]] for (int q = 0; q < D_QUADS; q++) own_d[r][q] = from_quad(OWN_D[row * uint(D_QUADS) + uint(q)]);
#endif
  }
}

#ifdef PASS_queries
void find_deltas(Head head, uint own) {
  FOR_ROWS {
    uint row = own_head(head) + min(own + uint(r), queries - 1u);
    vec4 sum = vec4(0.0);
    [[unroll]] for (int q = 0; q < D_QUADS; q++) {
      sum = fma(own_d[r][q], from_quad(y_rows[row * uint(D_QUADS) + uint(q)]), sum);
    }
    delta[r] = sum_of(sum);
    if (own + uint(r) < (queries + 3u) / 4u * 4u) {
      delta_of[statistic_at(head, own + uint(r))] = own + uint(r) < queries ? delta[r] : 0.0;
    }
  }
}
#endif

uint own_rows_of_group() { return gl_WorkGroupSize.x * uint(ROWS); }

// The sums before the first other row.
void start_sums(Head head, uint own, uint carried_row) {
  FOR_ROWS {
    uint at = (carried_row + uint(r)) * uint(CARRIED_QUADS);
#ifndef PASS_forward
    [[unroll]] for (int q = 0; q < C_QUADS; q++) sums_c[r][q] = RESUMED ? carried[at + uint(q)] : vec4(0.0);
#endif
#ifndef PASS_queries
    [[unroll]] for (int q = 0; q < D_QUADS; q++) {
      sums_d[r][q] = RESUMED ? carried[at + uint(C_QUADS + q)] : vec4(0.0);
    }
#endif
#ifdef PASS_forward
    vec4 last = RESUMED ? carried[at + uint(C_QUADS + D_QUADS)] : vec4(minus_infinity(), vec3(0.0));
    largest[r] = last.x;
    total[r] = last.y;
#endif
  }
}

void carry_sums(uint carried_row) {
  FOR_ROWS {
    uint at = (carried_row + uint(r)) * uint(CARRIED_QUADS);
#ifndef PASS_forward
    [[unroll]] for (int q = 0; q < C_QUADS; q++) carried[at + uint(q)] = sums_c[r][q];
#endif
#ifndef PASS_queries
    [[unroll]] for (int q = 0; q < D_QUADS; q++) carried[at + uint(C_QUADS + q)] = sums_d[r][q];
#endif
#ifdef PASS_forward
    carried[at + uint(C_QUADS + D_QUADS)] = vec4(largest[r], total[r], 0.0, 0.0);
#endif
  }
}

// Stores a row. Not unrolled, and from a copy: see gemm/gemm_store.glsl.
#define STORE_ROW(QUADS, row, sums, factor, store)                                             \
  {                                                                                            \
    vec4 results[QUADS];                                                                       \
    [[unroll]] for (int q = 0; q < QUADS; q++) results[q] = sums[q] * factor;                  \
    for (int q = 0; q < QUADS; q++) store((row) * uint(QUADS) + uint(q), results[q]);          \
  }

void store_results(Head head, uint own) {
  FOR_ROWS {
    uint row = own + uint(r);
#ifdef PASS_forward
    float inverse = total[r] == 0.0 ? 0.0 : 1.0 / total[r];
    if (row < (queries + 3u) / 4u * 4u) {
      uint at = statistic_at(head, row);
      largest_of[at] = row < queries && largest[r] != minus_infinity() ? largest[r] : 0.0;
      inverse_total_of[at] = row < queries ? inverse : 0.0;
    }
#endif
    if (row < own_count()) {
      row += own_head(head);
#ifdef PASS_forward
      STORE_ROW(D_QUADS, row, sums_d[r], inverse, store)
#elif defined(PASS_queries)
      STORE_ROW(C_QUADS, row, sums_c[r], scale, store)
#else
      STORE_ROW(D_QUADS, row, sums_d[r], 1.0, store)
      STORE_ROW(C_QUADS, row, sums_c[r], scale, store_dk)
#endif
    }
  }
}

uint own_row() {
  return linear_group() % own_tiles * own_rows_of_group() + gl_LocalInvocationID.x * uint(ROWS);
}
void prepare(Head head, uint own) {
  load_own(head, own);
#ifdef PASS_queries
  find_deltas(head, own);
#endif
}

#endif
