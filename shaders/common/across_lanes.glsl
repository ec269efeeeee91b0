// How expression.glsl reads and writes where an invocation does not have a quad of the result but one column of each of
// four parts of rows, and the LANES invocations of a subgroup have a part's columns. lavapipe, for which this is, loads
// and stores for one invocation after the other whatever they are, so kernels whose sums lie so need not exchange all
// of them.
//
// The including shader defines LANES and includes this file before expression.glsl. Before any loop, it sets
// result_lane. It may define WHOLE_PARTS, a constant that may only be true for 8 or 16 lanes: then only the first part is
// stored, which is there and whole, and not in a branch or loop. There lavapipe neither looks up a buffer nor compares
// with its size for each store, and what all invocations store at one address takes it three instructions.
#ifndef HALFSTEP_ACROSS_LANES
#define HALFSTEP_ACROSS_LANES

#ifndef WHOLE_PARTS
#define WHOLE_PARTS false
#endif

#include "common/of_lane.glsl"
#include "common/pairs.glsl"

// The invocation's number in its subgroup. Were gl_SubgroupInvocationID compared after a loop, lavapipe would keep what
// is compared in a loop's loads, too, in memory.
int result_lane;

// Four parts of rows of the result, LANES columns of each.
struct Parts {
  ivec4 at;       // the quad with each one's first column; -1: it is not stored
  ivec4 columns;  // that are stored, whole quads
  bvec4 padded;   // whether this invocation's is past the last column
};
#define PLACE Parts

// An array `name` of QUAD, or of vec4, is also one of elements, of words that two narrow ones fill, and of two words.
#define DECLARE_ELEMENTS(at, Name, name)                                                \
  layout(std430, binding = at) buffer ElementsOf##Name { float elements_of_##name[]; }; \
  layout(std430, binding = at) buffer WordsOf##Name { uint words_of_##name[]; };        \
  layout(std430, binding = at) buffer PairsOf##Name { uint64_t pairs_of_##name[]; };

// Two invocations' words.
#define WORDS_OF(words, first, second) pack64(uvec2(subgroupBroadcast(words, first), subgroupBroadcast(words, second)))

// Four invocations' words, `apart` lanes from each other, to adjacent words of an array.
#define SET_WORDS(name, at, words, lane, apart)                              \
  words_of_##name[at] = subgroupBroadcast(words, lane);                      \
  words_of_##name[(at) + 1] = subgroupBroadcast(words, (lane) + (apart));     \
  words_of_##name[(at) + 2] = subgroupBroadcast(words, (lane) + 2 * (apart)); \
  words_of_##name[(at) + 3] = subgroupBroadcast(words, (lane) + 3 * (apart));

// Stores the numbers of all invocations from a quad of an array of f32 on.
#define SET_WHOLE(name, at, number)                         \
  {                                                         \
    uint own = floatBitsToUint(number);                     \
    if (STORES_64_BITS) {                                   \
      int pair_at = (at) * 2;                               \
      pairs_of_##name[pair_at] = WORDS_OF(own, 0, 1);       \
      pairs_of_##name[pair_at + 1] = WORDS_OF(own, 2, 3);   \
      pairs_of_##name[pair_at + 2] = WORDS_OF(own, 4, 5);   \
      pairs_of_##name[pair_at + 3] = WORDS_OF(own, 6, 7);   \
    } else {                                                \
      int word_at = (at) * 4;                               \
      SET_WORDS(name, word_at, own, 0, 1)                   \
      SET_WORDS(name, word_at + 4, own, 4, 1)               \
      SET_WORDS(name, word_at + 8, own, 8, 1)               \
      SET_WORDS(name, word_at + 12, own, 12, 1)             \
    }                                                       \
  }

// Whether an argument has columns as the result has.
#define IS_ACROSS(argument) (((argument) & 15u) == WALK_ALIKE || ((argument) & 15u) == WALK_COLUMNS)

// This invocation's elements of an argument that is read for the parts.
#define ELEMENTS_OF(argument, parts, elements)                                       \
  bool across = IS_ACROSS(argument);                                                 \
  uvec4 elements;                                                                    \
  [[unroll]] for (int e = 0; e < 4; e++) {                                           \
    int last = max(parts.columns[e] - 1, 0);                                         \
    uint element = uint(across ? clamp(result_lane, 0, last) : result_lane % 4);     \
    if (((argument) & SPREAD) != 0u) element = 0u;                                   \
    elements[e] = argument_quad(argument, uint(max(parts.at[e], 0))) * 4u + element; \
  }

// The place of the part whose columns this invocation stores: number `from` plus the invocation's number masked by
// `mask`. -1 if they are not stored.
int stored_at(Parts parts, int from, int mask) {
  int at = -1;
  [[unroll]] for (int e = 0; e <= mask; e++) {
    int of_part = result_lane < parts.columns[from + e] ? parts.at[from + e] : -1;
    at = (result_lane & mask) == e ? of_part : at;
  }
  return at;
}

#define SET_PARTS(name, parts, v)                                                                  \
  if (STORES_64_BITS) {                                                                            \
    [[unroll]] for (int e = 0; e < 4; e += 2) {                                                    \
      uvec2 pair = pair_of_columns(floatBitsToUint(v[e]), floatBitsToUint(v[e + 1]), result_lane); \
      int own_at = stored_at(parts, e, 1);                                                         \
      if (own_at >= 0) pairs_of_##name[own_at * 2 + (result_lane >> 1)] = pack64(pair);            \
    }                                                                                              \
  } else {                                                                                         \
    [[unroll]] for (int e = 0; e < 4; e++) {                                                       \
      int own_at = stored_at(parts, e, 0);                                                         \
      if (own_at >= 0) elements_of_##name[own_at * 4 + result_lane] = v[e];                        \
    }                                                                                              \
  }
#define SET_WIDE(name, parts, v)         \
  if (WHOLE_PARTS) {                     \
    SET_WHOLE(name, parts.at.x, v.x)     \
  } else {                               \
    SET_PARTS(name, parts, v)            \
  }

#ifdef NARROW
uint word_of_columns(uint first, uint second) {
  uvec2 pair = pair_of_columns(first, second, result_lane);
  return pair.x | pair.y << 16;
}
// Two adjacent words of one of four parts: of the one whose number is the invocation's modulo four.
uvec2 pair_of_words(uint upper, uint lower) {
  bool below = (result_lane & 2) != 0;
  return with_neighbours(upper, lower, below, subgroupQuadSwapVertical(below ? upper : lower));
}
#define SET_NARROW_OF(result, name, parts, v)                                        \
  uvec4 bits = stored_bits(v, 0u, uint(result));                                     \
  uint upper = word_of_columns(bits.x, bits.y);                                      \
  uint lower = word_of_columns(bits.z, bits.w);                                      \
  if (WHOLE_PARTS) {                                                                 \
    uint word = word_of_columns(bits.x, bits.x);                                     \
    if (STORES_64_BITS) {                                                            \
      pairs_of_##name[parts.at.x] = WORDS_OF(word, 0, 2);                            \
      pairs_of_##name[parts.at.x + 1] = WORDS_OF(word, 4, 6);                        \
    } else {                                                                         \
      SET_WORDS(name, parts.at.x * 2, word, 0, 2)                                    \
      SET_WORDS(name, parts.at.x * 2 + 4, word, 8, 2)                                \
    }                                                                                \
  } else if (STORES_64_BITS) {                                                       \
    uvec2 pair = pair_of_words(upper, lower);                                        \
    int own_at = stored_at(parts, 0, 3);                                             \
    if (own_at >= 0) pairs_of_##name[own_at + (result_lane >> 2)] = pack64(pair);    \
  } else {                                                                           \
    int upper_at = stored_at(parts, 0, 1);                                           \
    int lower_at = stored_at(parts, 2, 1);                                           \
    if (upper_at >= 0) words_of_##name[upper_at * 2 + (result_lane >> 1)] = upper;   \
    if (lower_at >= 0) words_of_##name[lower_at * 2 + (result_lane >> 1)] = lower;   \
  }
#define IS_ROW_OF_F32(argument) (IS_ACROSS(argument) && ((argument) & (WIDE | SPREAD)) == WIDE)
#define READ_ELEMENTS(argument, j, elements, v)                                                \
  if (((argument) & WIDE) != 0u) {                                                             \
    [[unroll]] for (int e = 0; e < 4; e++) v[e] = elements_of_argument_##j[elements[e]];       \
  } else {                                                                                     \
    uvec4 bits;                                                                                \
    [[unroll]] for (int e = 0; e < 4; e++) {                                                   \
      bits[e] = words_of_argument_##j[elements[e] >> 1] >> (elements[e] & 1u) * 16u & 0xffffu; \
    }                                                                                          \
    v = from_bits(bits);                                                                       \
  }
#else
#define SET_NARROW_OF(result, name, parts, v) SET_WIDE(name, parts, v)
#define IS_ROW_OF_F32(argument) (IS_ACROSS(argument) && ((argument) & SPREAD) == 0u)
#define READ_ELEMENTS(argument, j, elements, v) \
  [[unroll]] for (int e = 0; e < 4; e++) v[e] = elements_of_argument_##j[elements[e]];
#endif
#define SET_NARROW(name, parts, v) SET_NARROW_OF(0, name, parts, v)

// The first part's elements of an argument that IS_ROW_OF_F32: one load, as in of_lane.glsl.
#define READ_WHOLE(argument, j, parts, v)                                                           \
  uint first = argument_quad(argument, uint(parts.at.x)) * 4u;                                      \
  float row[LANES];                                                                                 \
  [[unroll]] for (int l = 0; l < LANES; l++) row[l] = elements_of_argument_##j[first + uint(l)];    \
  [[unroll]] for (int l = 0; l < LANES; l++) v.x = gl_SubgroupInvocationID == uint(l) ? row[l] : v.x;
#define READ_ARGUMENT(j, parts, v)                  \
  if (WHOLE_PARTS && IS_ROW_OF_F32(ARGUMENT_##j)) { \
    READ_WHOLE(ARGUMENT_##j, j, parts, v)           \
  } else {                                          \
    ELEMENTS_OF(ARGUMENT_##j, parts, elements)      \
    READ_ELEMENTS(ARGUMENT_##j, j, elements, v)     \
  }

#define WITHOUT_PAD(v, parts) mix(v, vec4(0.0), parts.padded)

#endif
