// The loop over k of the kernels for drivers with Target::uniform_loads. An iteration adds STEP quads of k of each of
// SEGMENTS segments, adjacent in a row and then all that they have, or of one where that is 0. The including file
// defines these constants and
//   lane()                 the invocation's number
//   seek(segment)          before those of a segment
//   add_products(k_quad)   adds STEP quads of k of it
// and, if it has them, ALL_AT_ONCE, whether SEGMENTS are all there are, and MAY_BE_EMPTY, whether a tile may have none.
//
// lavapipe keeps what an iteration hands to the next as a vector, under a mask of the invocations that are in the loop,
// and reads what is the same for all of them from the first of these. Which that is, it knows when an iteration has
// ended, and only then could the next one find its addresses. So each invocation has a count of its own, which is known
// sooner, and that of one is broadcast. It is the only thing that is handed on, besides the sums.
//
// Without any loop, LLVM would move sums to where each is stored, and so keep all operands in memory.
#ifndef HALFSTEP_GEMM_STEPS
#define HALFSTEP_GEMM_STEPS

#ifndef ALL_AT_ONCE
#define ALL_AT_ONCE false
#endif

#ifndef MAY_BE_EMPTY
#define MAY_BE_EMPTY IN_PHASES
#endif

const int STEP_QUADS = SEGMENTS > 0 ? SEGMENTS * STEP : STEP;

void add_step(int at) {
  if (SEGMENTS > 0) {
    Segment segment = segment_at(at * SEGMENTS);
    [[unroll]] for (int s = 0; s < SEGMENTS; s++) {
      seek(ALL_AT_ONCE ? segment_at(s) : s == 0 ? segment : segment_beside(segment, s));
      add_products(0);
    }
  } else {
#if defined(TAPS) || defined(LINES)
    int steps = quads(k) / STEP;  // of a segment
    int segment = at / steps;
    seek(segment_at(segment));
    add_products((at - segment * steps) * STEP);
#else
    seek(segment_at(0));  // a matrix is one segment
    add_products(at * STEP);
#endif
  }
}

void add_tile_products(Tile tile) {
  int first = tile.k_begin / STEP_QUADS;
  int end = tile.k_end / STEP_QUADS;
  if (MAY_BE_EMPTY && first >= end) return;
  int own = first + lane();
  bool more;
  do {
    int at = subgroupBroadcast(own, 0);
    add_step(at);
    own++;
    more = at + 1 < end;
  } while (more);
}

#endif
