// How expression.glsl reads and writes where an invocation does not have a quad of the result but one column of four of
// its rows, and the LANES invocations of a subgroup have adjacent ones: element by element. lavapipe, for which this is,
// reads and stores quads element by element, too, and kernels whose sums lie so need not exchange them.
//
// The including shader defines LANES and includes this file before expression.glsl. Before any loop, it sets result_lane.
#ifndef HALFSTEP_ACROSS_LANES
#define HALFSTEP_ACROSS_LANES

#define BROADCASTS
#include "common/from_lane.glsl"

#include "common/of_lane.glsl"

// The invocation's number in its subgroup. Were gl_SubgroupInvocationID compared after a loop, lavapipe would keep what is
// compared in a loop's loads, too, in memory.
int result_lane;

// Four rows of the result.
struct Rows {
  ivec4 at;     // the quad with each one's first of these columns; -1: the row is not stored
  int columns;  // that are stored, whole quads
  bool padded;  // whether this invocation's is past the last column
};
#define PLACE Rows

// An array `name` of QUAD, or of vec4, is also one of elements, or of words that two of them fill.
#define DECLARE_ELEMENTS(at, Name, name)                                                \
  layout(std430, binding = at) buffer ElementsOf##Name { float elements_of_##name[]; }; \
  layout(std430, binding = at) buffer WordsOf##Name { uint words_of_##name[]; };

// This invocation's elements of an argument that is read for the rows.
#define ELEMENTS_OF(argument, rows, elements)                                                            \
  uint walk = (argument) & 15u;                                                                          \
  bool across = walk == WALK_ALIKE || walk == WALK_COLUMNS;                                              \
  uint element = across ? uint(clamp(result_lane, 0, max(rows.columns - 1, 0))) : uint(result_lane % 4); \
  if (((argument) & SPREAD) != 0u) element = 0u;                                                         \
  uvec4 elements;                                                                                        \
  [[unroll]] for (int e = 0; e < 4; e++) {                                                               \
    elements[e] = argument_quad(argument, uint(max(rows.at[e], 0))) * 4u + element;                      \
  }

#define SET_WIDE(name, rows, v)                                \
  [[unroll]] for (int e = 0; e < 4; e++) {                     \
    if (rows.at[e] >= 0 && result_lane < rows.columns) {       \
      elements_of_##name[rows.at[e] * 4 + result_lane] = v[e]; \
    }                                                          \
  }

#ifdef NARROW
// Of invocation l, the words of columns 2l and 2l + 1.
uint joined_columns(uint bits) {
  uint word = 0u;
  [[unroll]] for (int l = 0; l < LANES / 2; l++) {
    uint joined = from_lane(bits, 2 * l) | from_lane(bits, 2 * l + 1) << 16;
    word = result_lane == l ? joined : word;
  }
  return word;
}
#define SET_NARROW_OF(result, name, rows, v)                 \
  uvec4 bits = stored_bits(v, 0u, uint(result));             \
  [[unroll]] for (int e = 0; e < 4; e++) {                   \
    uint word = joined_columns(bits[e]);                     \
    if (rows.at[e] >= 0 && result_lane * 2 < rows.columns) { \
      words_of_##name[rows.at[e] * 2 + result_lane] = word;  \
    }                                                        \
  }
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
#define SET_NARROW_OF(result, name, rows, v) SET_WIDE(name, rows, v)
#define READ_ELEMENTS(argument, j, elements, v) \
  [[unroll]] for (int e = 0; e < 4; e++) v[e] = elements_of_argument_##j[elements[e]];
#endif
#define SET_NARROW(name, rows, v) SET_NARROW_OF(0, name, rows, v)

#define READ_ARGUMENT(j, rows, v)           \
  ELEMENTS_OF(ARGUMENT_##j, rows, elements) \
  READ_ELEMENTS(ARGUMENT_##j, j, elements, v)

#define WITHOUT_PAD(v, rows) (rows.padded ? vec4(0.0) : v)

#endif
