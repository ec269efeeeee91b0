// Stores of 64 bits for kernels whose LANES invocations of a subgroup have adjacent columns: lavapipe stores for one
// invocation after the other, in as many instructions for 64 bits as for 32. Not with 16 lanes: when it compiles numbers
// of 64 bits for so many, it overruns its stack.
#ifndef HALFSTEP_PAIRS
#define HALFSTEP_PAIRS

const bool STORES_64_BITS = LANES == 8;

// The two numbers that an invocation stores: one of its own, and one from a neighbour in its quad of invocations, which
// got its other one in exchange.
uvec2 with_neighbours(uint first, uint second, bool has_second, uint neighbours) {
  return has_second ? uvec2(neighbours, second) : uvec2(first, neighbours);
}

// Of the columns of a first and of a second row, two adjacent ones: even lanes have those of the first, odd lanes those
// of the second, from lane / 2 * 2 on. Called by all invocations.
uvec2 pair_of_columns(uint first, uint second, int lane) {
  bool odd = (lane & 1) != 0;
  return with_neighbours(first, second, odd, subgroupQuadSwapHorizontal(odd ? first : second));
}

#endif
