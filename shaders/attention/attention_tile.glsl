// A workgroup of 64 invocations has TILE rows of its own and goes over the other ones TILE at a time, through shared
// memory. Invocation {down, across} of 8 by 8 has four by four scores, and of four own rows every eighth quad of sums.
// For GPUs. Products are computed by the invocations, with no subgroup operations, so that it runs anywhere; or by matrix
// units.
#ifndef HALFSTEP_ATTENTION_TILE
#define HALFSTEP_ATTENTION_TILE

const int SIDE = 8;          // invocations
const int TILE = 4 * SIDE;   // rows
const int C_PARTS = (C_QUADS + SIDE - 1) / SIDE;
const int D_PARTS = (D_QUADS + SIDE - 1) / SIDE;

shared float exchanged[TILE * SIDE];

#ifndef PASS_forward
vec4 sums_c[4][C_PARTS];
#endif
#ifndef PASS_queries
vec4 sums_d[4][D_PARTS];
#endif

uint own_rows_of_group() { return uint(TILE); }
int down() { return int(gl_LocalInvocationIndex) / SIDE; }
int across() { return int(gl_LocalInvocationIndex) % SIDE; }

#define FOUR(i) [[unroll]] for (int i = 0; i < 4; i++)

// They have two parts in shared memory, SIDE quads of TILE rows each, whose products they add up: of own rows (or of
// weights) and of other rows. An invocation keeps one quad of four rows.
#ifdef MATRIX_UNITS
#include "attention/attention_units.glsl"
#else
#include "attention/attention_products.glsl"
#endif

// Copies SIDE quads, from `begin` on, of TILE rows to shared memory; zeros past the last row or quad.
#define STAGE(keep, rows, head_row, first_row, count, QUADS, begin)                                            \
  {                                                                                                            \
    vec4 staged[4];                                                                                            \
    FOUR(j) {                                                                                                  \
      uint row = (first_row) + uint(down() * 4 + j);                                                           \
      int quad = (begin) + across();                                                                           \
      bool inside = row < (count) && quad < QUADS;                                                             \
      vec4 v = from_quad(rows[inside ? ((head_row) + row) * uint(QUADS) + uint(quad) : 0u]);                   \
      staged[j] = inside ? v : vec4(0.0);                                                                      \
    }                                                                                                          \
    keep(staged);                                                                                              \
  }

// Four own rows' products with four other rows, over all their quads.
#define FIND_PRODUCTS(products, QUADS, own_rows, other_rows)                                      \
  start_products(products);                                                                       \
  for (int begin = 0; begin < QUADS; begin += SIDE) {                                             \
    barrier();                                                                                    \
    STAGE(keep_own, own_rows, own_head(head), own, own_count(), QUADS, begin)                     \
    STAGE(keep_other, other_rows, other_head(head), other, other_count(), QUADS, begin)           \
    barrier();                                                                                    \
    add_row_products(products);                                                                   \
  }                                                                                               \
  finish_products(products);

// Adds the other rows times their weights to the sums.
#define ADD_ROWS(sums, weights, QUADS, PARTS, other_rows)                                         \
  barrier();                                                                                      \
  keep_own(weights);                                                                              \
  [[unroll]] for (int part = 0; part < PARTS; part++) {                                           \
    barrier();                                                                                    \
    STAGE(keep_summed, other_rows, other_head(head), other, other_count(), QUADS, part * SIDE)    \
    barrier();                                                                                    \
    vec4 part_sums[4];                                                                            \
    FOUR(i) part_sums[i] = sums[i][part];                                                         \
    add_weighted_rows(part_sums);                                                                 \
    FOUR(i) sums[i][part] = part_sums[i];                                                         \
  }

// The sum, or largest, over the eight invocations that share own rows; to each of them.
vec4 exchanged_over(vec4 v, bool add) {
  barrier();
  FOUR(i) exchanged[(down() * 4 + i) * SIDE + across()] = v[i];
  barrier();
  FOUR(i) {
    float all = exchanged[(down() * 4 + i) * SIDE];
    [[unroll]] for (int j = 1; j < SIDE; j++) {
      float next = exchanged[(down() * 4 + i) * SIDE + j];
      all = add ? all + next : max(all, next);
    }
    v[i] = all;
  }
  return v;
}

// Hides the scores of what is not seen, and adds the mask to the others.
void mask_scores(Head head, uint own, uint other, inout vec4 scores[4]) {
  FOUR(i) FOUR(j) {
    uint own_row = own + uint(down() * 4 + i);
    uint other_row = other + uint(across() * 4 + j);
    if (sees(head, QUERY(own_row, other_row), KEY(own_row, other_row)) && own_row < own_count()) {
      if (MASK != 0u) scores[i][j] += mask_at(head, QUERY(own_row, other_row), KEY(own_row, other_row));
    } else {
      scores[i][j] = minus_infinity();
    }
  }
}

// What dropout multiplies the weights by.
void find_factors(Head head, uint own, uint other, out vec4 factors[4]) {
  uint own_row = own + uint(down() * 4);
  uint other_row = other + uint(across() * 4);
#ifdef PASS_keys
  FOUR(j) {
    vec4 of_keys = kept_factors(head, other_row + uint(j), own_row);
    FOUR(i) factors[i][j] = of_keys[i];
  }
#else
  FOUR(i) factors[i] = kept_factors(head, own_row + uint(i), other_row);
#endif
}

#ifdef PASS_forward
vec4 largest;  // of four own rows
vec4 total;    // over this invocation's columns

void add_tile(Head head, uint own, uint other) {
  vec4 weights[4];
  FIND_PRODUCTS(weights, C_QUADS, OWN_C, OTHER_C)
  FOUR(i) weights[i] *= scale;
  mask_scores(head, own, other, weights);
  vec4 top;
  FOUR(i) top[i] = max(max(weights[i].x, weights[i].y), max(weights[i].z, weights[i].w));
  top = max(largest, exchanged_over(top, false));
  // While all that was seen is minus infinity, nothing is subtracted from it.
  vec4 base = mix(top, vec4(0.0), equal(top, vec4(minus_infinity())));
  FOUR(i) {
    float shrink = exp_or_nan(largest[i] - base[i]);
    FOUR(j) weights[i][j] = exp_or_nan(weights[i][j] - base[i]);
    total[i] = fma(total[i], shrink, sum_of(weights[i]));
    [[unroll]] for (int part = 0; part < D_PARTS; part++) sums_d[i][part] *= shrink;
  }
  largest = top;
  if (DROPOUT) {
    vec4 factors[4];
    find_factors(head, own, other, factors);
    FOUR(i) weights[i] *= factors[i];
  }
  ADD_ROWS(sums_d, weights, D_QUADS, D_PARTS, OTHER_D)
}
#else
vec4 delta;  // of four own queries

void add_tile(Head head, uint own, uint other) {
  vec4 weights[4];
  vec4 gradients[4];
  FIND_PRODUCTS(weights, C_QUADS, OWN_C, OTHER_C)
  FIND_PRODUCTS(gradients, D_QUADS, OWN_D, OTHER_D)
  FOUR(i) weights[i] *= scale;
  mask_scores(head, own, other, weights);
  vec4 factors[4];
  FOUR(i) factors[i] = vec4(1.0);
  if (DROPOUT) find_factors(head, own, other, factors);
  FOUR(i) FOUR(j) {
    uint query = QUERY(own + uint(down() * 4 + i), other + uint(across() * 4 + j));
    uint at = statistic_at(head, min(query, queries - 1u));
    float p = exp_or_nan(weights[i][j] - largest_of[at]) * inverse_total_of[at];
#ifdef PASS_keys
    gradients[i][j] = p * (gradients[i][j] * factors[i][j] - delta_of[at]);
#else
    gradients[i][j] = p * (gradients[i][j] * factors[i][j] - delta[i]);
#endif
    weights[i][j] = p * factors[i][j];
  }
  ADD_ROWS(sums_c, gradients, C_QUADS, C_PARTS, OTHER_C)
#ifdef PASS_keys
  ADD_ROWS(sums_d, weights, D_QUADS, D_PARTS, OTHER_D)
#endif
}
#endif

#ifdef PASS_queries
void find_deltas(Head head, uint own) {
  FOUR(i) {
    uint row = own_head(head) + min(own + uint(down() * 4 + i), queries - 1u);
    vec4 sum = vec4(0.0);
    [[unroll]] for (int part = 0; part < D_PARTS; part++) {
      int quad = part * SIDE + across();
      uint at = row * uint(D_QUADS) + uint(min(quad, D_QUADS - 1));
      if (quad < D_QUADS) sum = fma(from_quad(dy_rows[at]), from_quad(y_rows[at]), sum);
    }
    delta[i] = sum_of(sum);
  }
  delta = exchanged_over(delta, true);
  FOUR(i) {
    uint query = own + uint(down() * 4 + i);
    if (across() == i && query < (queries + 3u) / 4u * 4u) {
      delta_of[statistic_at(head, query)] = query < queries ? delta[i] : 0.0;
    }
  }
}
#endif

// Runs `use` with `i`, an own row, `part`, and `at`, the place in `carried` of that quad of the sums.
#define FOR_CARRIED(QUADS, PARTS, first, use)                                                          \
  FOUR(i) [[unroll]] for (int part = 0; part < PARTS; part++) {                                        \
    int quad = part * SIDE + across();                                                                 \
    uint at = (carried_row + uint(down() * 4 + i)) * uint(CARRIED_QUADS) + uint((first) + quad);       \
    if (quad < QUADS) { use }                                                                          \
  }

// The sums before the first other row.
void start_sums(Head head, uint own, uint carried_row) {
#ifndef PASS_forward
  FOUR(i) [[unroll]] for (int part = 0; part < C_PARTS; part++) sums_c[i][part] = vec4(0.0);
  if (RESUMED) FOR_CARRIED(C_QUADS, C_PARTS, 0, sums_c[i][part] = carried[at];)
#endif
#ifndef PASS_queries
  FOUR(i) [[unroll]] for (int part = 0; part < D_PARTS; part++) sums_d[i][part] = vec4(0.0);
  if (RESUMED) FOR_CARRIED(D_QUADS, D_PARTS, C_QUADS, sums_d[i][part] = carried[at];)
#endif
#ifdef PASS_forward
  largest = vec4(minus_infinity());
  total = vec4(0.0);
  if (RESUMED) {
    FOUR(i) {
      vec4 last = carried[(carried_row + uint(down() * 4 + i) + 1u) * uint(CARRIED_QUADS) - 1u];
      largest[i] = last.x;
      total[i] += across() == 0 ? last.y : 0.0;
    }
  }
#endif
}

void carry_sums(uint carried_row) {
#ifndef PASS_forward
  FOR_CARRIED(C_QUADS, C_PARTS, 0, carried[at] = sums_c[i][part];)
#endif
#ifndef PASS_queries
  FOR_CARRIED(D_QUADS, D_PARTS, C_QUADS, carried[at] = sums_d[i][part];)
#endif
#ifdef PASS_forward
  vec4 all = exchanged_over(total, true);
  FOUR(i) {
    uint at = (carried_row + uint(down() * 4 + i) + 1u) * uint(CARRIED_QUADS) - 1u;
    if (across() == i) carried[at] = vec4(largest[i], all[i], 0.0, 0.0);
  }
#endif
}

// Stores four own rows. Not unrolled, and from a copy: see gemm/gemm_store.glsl.
#define STORE_ROWS(QUADS, PARTS, sums, factors, store)                                                 \
  {                                                                                                    \
    vec4 results[4 * PARTS];                                                                           \
    FOUR(i) [[unroll]] for (int part = 0; part < PARTS; part++) {                                      \
      results[i * PARTS + part] = sums[i][part] * factors[i];                                          \
    }                                                                                                  \
    for (int k = 0; k < 4 * PARTS; k++) {                                                              \
      uint row = own + uint(down() * 4 + k / PARTS);                                                   \
      int quad = k % PARTS * SIDE + across();                                                          \
      if (row < own_count() && quad < QUADS) {                                                         \
        store((own_head(head) + row) * uint(QUADS) + uint(quad), results[k]);                          \
      }                                                                                                \
    }                                                                                                  \
  }

void store_results(Head head, uint own) {
#ifdef PASS_forward
  vec4 all = exchanged_over(total, true);
  vec4 inverse;
  FOUR(i) {
    inverse[i] = all[i] == 0.0 ? 0.0 : 1.0 / all[i];
    uint query = own + uint(down() * 4 + i);
    if (across() == i && query < (queries + 3u) / 4u * 4u) {
      uint at = statistic_at(head, query);
      largest_of[at] = query < queries && largest[i] != minus_infinity() ? largest[i] : 0.0;
      inverse_total_of[at] = query < queries ? inverse[i] : 0.0;
    }
  }
  STORE_ROWS(D_QUADS, D_PARTS, sums_d, inverse, store)
#elif defined(PASS_queries)
  vec4 factors = vec4(scale);
  STORE_ROWS(C_QUADS, C_PARTS, sums_c, factors, store)
#else
  vec4 factors = vec4(scale);
  vec4 ones = vec4(1.0);
  STORE_ROWS(D_QUADS, D_PARTS, sums_d, ones, store)
  STORE_ROWS(C_QUADS, C_PARTS, sums_c, factors, store_dk)
#endif
}

uint own_row() { return linear_group() % own_tiles * uint(TILE); }
void prepare(Head head, uint own) {
#ifdef PASS_queries
  find_deltas(head, own);
#endif
}

#endif
