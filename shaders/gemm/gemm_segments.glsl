// The loop over k of the kernels that compute a tile with a subgroup. The including file defines MOST_QUADS,
// seek(segment) and add_products(quad of k).
#ifndef HALFSTEP_GEMM_SEGMENTS
#define HALFSTEP_GEMM_SEGMENTS

// Adds the products of quads of k from `done` on, up to the end of their segment at most; returns how many.
int add_segment(Tile tile, int done) {
  int segment = done / quads(k);
  int k_quad = done - segment * quads(k);
  int count = min(quads(k) - k_quad, min(tile.k_end - done, MOST_QUADS));
  seek(segment);
  int k_stop = k_quad + count;
  do {
    add_products(k_quad);
    k_quad++;
  } while (k_quad < k_stop);
  return count;
}

#endif
