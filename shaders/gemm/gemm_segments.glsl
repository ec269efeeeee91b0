// The loop over k of the kernels that compute a tile with a subgroup and shuffles. The including file defines
// seek(segment) and add_products(quad of k), which adds STEP quads of k of that segment, and MOST_QUADS, how many quads
// of a segment are added before end_sums().
//
// ONE_COPY, if it defines that as true, adds a way out of the loop before its first products, which no invocation takes.
// Without it, lavapipe of Mesa 22 ends an iteration with copies of all sums under a mask, and keeps both, as the next
// iteration reads the one and what follows the loop the other. With it, a sum is one variable.
#ifndef HALFSTEP_GEMM_SEGMENTS
#define HALFSTEP_GEMM_SEGMENTS

#ifndef ONE_COPY
#define ONE_COPY false
#endif

#if defined(TAPS) || defined(LINES)
void add_tile_products(Tile tile) {
  int first = tile.k_begin / quads(k);
  Segment segment = segment_at(first);
  int k_quad = tile.k_begin - first * quads(k);
  int left = tile.k_end - tile.k_begin;
  if (IN_PHASES && left <= 0) return;
  do {
    int count = min(quads(k) - k_quad, min(left, MOST_QUADS));
    seek(segment);
    int k_stop = k_quad + count;
    do {
      if (ONE_COPY && nothing_runs()) break;
      add_products(k_quad);
      k_quad += STEP;
    } while (k_quad < k_stop);
    end_sums();
    left -= count;
    bool ends = k_quad >= quads(k);
    k_quad = ends ? 0 : k_quad;
    if (ends) segment = segment_after(segment, 1);
  } while (left > 0);
}
#else
// A matrix is one segment.
void add_tile_products(Tile tile) {
  int k_quad = tile.k_begin;
  seek(segment_at(0));
  do {
    if (ONE_COPY && nothing_runs()) break;
    add_products(k_quad);
    k_quad += STEP;
    bool is_full = MOST_QUADS < 0x7fffffff && (k_quad - tile.k_begin) % MOST_QUADS == 0;
    if (is_full) end_sums();
  } while (k_quad < tile.k_end);
  end_sums();
}
#endif

#endif
