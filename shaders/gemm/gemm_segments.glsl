// The loop over k of the kernels that compute a tile with a subgroup. The including file defines seek(segment) and
// add_products(quad of k), which adds STEP quads of k, of each of SEGMENTS segments from that one on; and MOST_QUADS, how
// many of a segment it adds before end_sums().
#ifndef HALFSTEP_GEMM_SEGMENTS
#define HALFSTEP_GEMM_SEGMENTS

void add_tile_products(Tile tile) {
  int first = tile.k_begin / quads(k);
  Segment segment = segment_at(first);
  int k_quad = tile.k_begin - first * quads(k);
  int left = (tile.k_end - tile.k_begin) / SEGMENTS;
  if (IN_PHASES && left <= 0) return;
  do {
    int count = min(quads(k) - k_quad, min(left, MOST_QUADS));
    seek(segment);
    int k_stop = k_quad + count;
    do {
      add_products(k_quad);
      k_quad += STEP;
    } while (k_quad < k_stop);
    end_sums();
    left -= count;
    bool ends = k_quad >= quads(k);
    k_quad = ends ? 0 : k_quad;
    if (ends) segment = segment_after(segment, SEGMENTS);
  } while (left > 0);
}

#endif
