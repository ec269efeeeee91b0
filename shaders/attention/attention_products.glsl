// The products of attention_tile.glsl, by its invocations: four by four each.
#ifndef HALFSTEP_ATTENTION_PRODUCTS
#define HALFSTEP_ATTENTION_PRODUCTS

const int PITCH = SIDE + 1;  // quads of a row in shared memory; the extra one avoids bank conflicts
shared vec4 own_part[TILE * PITCH];
shared vec4 other_part[TILE * PITCH];

void keep_own(vec4 v[4]) {
  FOUR(j) own_part[(down() * 4 + j) * PITCH + across()] = v[j];
}
void keep_other(vec4 v[4]) {
  FOUR(j) other_part[(down() * 4 + j) * PITCH + across()] = v[j];
}
void keep_summed(vec4 v[4]) { keep_other(v); }

void start_products(out vec4 products[4]) {
  FOUR(i) products[i] = vec4(0.0);
}
// Own rows times other rows, over the quads that are there.
void add_row_products(inout vec4 products[4]) {
  for (int quad = 0; quad < SIDE; quad++) {
    vec4 others[4];
    FOUR(j) others[j] = other_part[(across() * 4 + j) * PITCH + quad];
    FOUR(i) {
      vec4 own_quad = own_part[(down() * 4 + i) * PITCH + quad];
      FOUR(j) products[i][j] += dot(own_quad, others[j]);
    }
  }
}
void finish_products(inout vec4 products[4]) {}

// The other rows, times the weights in own_part.
void add_weighted_rows(inout vec4 sums[4]) {
  vec4 added[4];
  FOUR(i) added[i] = vec4(0.0);
  for (int quad = 0; quad < SIDE; quad++) {
    vec4 weights[4];
    FOUR(i) weights[i] = own_part[(down() * 4 + i) * PITCH + quad];
    FOUR(j) {
      vec4 v = other_part[(quad * 4 + j) * PITCH + across()];
      FOUR(i) added[i] = fma(vec4(weights[i][j]), v, added[i]);
    }
  }
  FOUR(i) sums[i] += added[i];
}

#endif
