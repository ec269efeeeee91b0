// What all kernels of attention share: their tensors, which keys a query sees, and the noise of dropout.
//
// Three passes compute it forward and backward. Each gives an invocation or workgroup some rows of its own, and goes
// over the other ones in tiles. With scores s = own_c . other_c scale + mask and weights p = exp(s - largest) / total:
//   forward   own: queries; other: keys and values;      y = sum over keys of p v, and largest and total on the way
//   queries   own: queries and dy; other: keys, values;  dq = scale sum over keys of ds k, with ds = p (dy . v - dy . y)
//   keys      own: keys, values; other: queries and dy;  dk = scale sum over queries of ds q, dv = sum of p dy
// Tensors named _c have C_QUADS quads a row (queries and keys), those named _d D_QUADS (values and results). Dao et al.
// 2022 and Dao 2023 describe the method; sums are kept by one owner each, so there are no atomics. A tile's terms are
// summed by themselves before they are added to a sum over all tiles: that has fewer additions, each of which rounds.
#ifndef HALFSTEP_ATTENTION
#define HALFSTEP_ATTENTION

#ifdef PASS_forward
#define RESULT_BINDING 9
#define FIRST_ARGUMENT 10
#elif defined(PASS_queries)
#define RESULT_BINDING 12
#define FIRST_ARGUMENT 13
#else
#define RESULT_BINDING 11
#define FIRST_ARGUMENT 13
#endif
#include "common/expression.glsl"
#include "common/rng.glsl"
#include "step/step_state.glsl"

layout(constant_id = 1) const int C_QUADS = 1;
layout(constant_id = 2) const int D_QUADS = 1;
layout(constant_id = 3) const bool CAUSAL = false;
layout(constant_id = 4) const bool WINDOW = false;
layout(constant_id = 5) const bool LENGTHS = false;
layout(constant_id = 6) const uint MASK = 0u;  // 1: a number for each key, 2: one for all keys
layout(constant_id = 7) const bool DROPOUT = false;
// Where a driver's limit of loop rounds cuts the other rows into parts: whether there is a part before, and after this.
layout(constant_id = 8) const bool RESUMED = false;
layout(constant_id = 9) const bool CONTINUED = false;
layout(constant_id = 10) const bool SEGMENTS = false;  // then the buffer Lengths is of attention_segments.comp

layout(push_constant) uniform Push {
  uint queries;
  uint keys;
  uint heads;       // of queries
  uint group;       // heads of queries for each of keys
  uint own_heads;   // of all batches
  uint own_tiles;   // of a head
  uint window;
  uint first;       // of the other rows of this part, a multiple of TILE
  uint end;
  uint first_head;  // of the group, in pass `keys`
  uint end_head;
  uint mask_batch;  // quads from one to the next; 0 where the mask broadcasts
  uint mask_head;
  uint mask_row;
  float scale;
  uint stream;
  uint dropped;     // random words below this drop a weight
  float factor;     // of the others
};

layout(std430, binding = 0) readonly buffer Q { QUAD q_rows[]; };
layout(std430, binding = 1) readonly buffer K { QUAD k_rows[]; };
layout(std430, binding = 2) readonly buffer V { QUAD v_rows[]; };
layout(std430, binding = 3) readonly buffer Mask { QUAD mask_rows[]; };
layout(std430, binding = 4) readonly buffer Lengths { uint lengths[]; };
layout(std430, binding = 5) readonly buffer State { StepState state; };
layout(std430, binding = 6) buffer Carried { vec4 carried[]; };  // sums of the part before, by own row
#ifdef PASS_forward
layout(std430, binding = 7) writeonly buffer Largest { float largest_of[]; };
layout(std430, binding = 8) writeonly buffer Inverse { float inverse_total_of[]; };
#else
layout(std430, binding = 7) readonly buffer Largest { float largest_of[]; };
layout(std430, binding = 8) readonly buffer Inverse { float inverse_total_of[]; };
layout(std430, binding = 9) readonly buffer DY { QUAD dy_rows[]; };
#endif
#ifdef PASS_queries
layout(std430, binding = 10) readonly buffer Y { QUAD y_rows[]; };
layout(std430, binding = 11) writeonly buffer Deltas { float delta_of[]; };  // dy . y of each query
#endif
#ifdef PASS_keys
layout(std430, binding = 10) readonly buffer Deltas { float delta_of[]; };
layout(std430, binding = 12) writeonly buffer DK { QUAD dk_rows[]; };
#endif

#ifdef PASS_keys
#define OWN_C k_rows
#define OWN_D v_rows
#define OTHER_C q_rows
#define OTHER_D dy_rows
#else
#define OWN_C q_rows
#define OWN_D dy_rows
#define OTHER_C k_rows
#define OTHER_D v_rows
#endif

const int CARRIED_QUADS = C_QUADS + D_QUADS + 1;

float minus_infinity() { return uintBitsToFloat(0xff800000u); }

// Where a head's rows are: of queries {batch, head} and of keys.
struct Head {
  uint batch;
  uint query_head;  // of all batches
  uint key_head;
  uint visible;     // keys; those from here on are padding
};

Head head_of(uint batch, uint query_head) {
  Head head;
  head.batch = batch;
  head.query_head = batch * heads + query_head;
  head.key_head = (batch * heads + query_head) / group;
  head.visible = LENGTHS ? min(lengths[batch], keys) : keys;
  return head;
}

// The segment of a row of a batch, and after those of all rows, whether their numbers decrease somewhere.
uint segments_at(Head head) { return head.batch * ((keys + 3u) / 4u * 4u + 4u); }
uint segment_of(Head head, uint row) { return lengths[segments_at(head) + min(row, keys - 1u)]; }
bool segments_decrease(Head head) { return lengths[segments_at(head) + (keys + 3u) / 4u * 4u] != 0u; }

// How many rows have segments below this one, or up to it.
uint rows_before(Head head, uint segment, bool up_to) {
  uint first = 0u;
  uint end = keys;
  while (first < end) {
    uint middle = (first + end) / 2u;
    uint found = segment_of(head, middle);
    if (found < segment || (up_to && found == segment)) {
      first = middle + 1u;
    } else {
      end = middle;
    }
  }
  return first;
}

// The rows that have any of the segments of the rows from `low` to `high`, or more.
uvec2 rows_of_segments(Head head, uint low, uint high) {
  if (segments_decrease(head)) return uvec2(0u, keys);
  return uvec2(rows_before(head, segment_of(head, low), false), rows_before(head, segment_of(head, high), true));
}

bool sees(Head head, uint query, uint key) {
  bool seen = key < head.visible && query < queries;
  bool same = !SEGMENTS || segment_of(head, query) == segment_of(head, key);
  seen = seen && same;
  if (CAUSAL) seen = seen && key <= query;
  if (WINDOW) seen = seen && key < query + window && query < key + window;
  return seen;
}

// Keys that any of the queries from `low` to `high` sees, or more: from x up to but not including y.
uvec2 keys_seen(Head head, uint low, uint high) {
  uvec2 range = SEGMENTS ? rows_of_segments(head, low, high) : uvec2(0u, head.visible);
  if (CAUSAL) range.y = min(range.y, high + 1u);
  if (WINDOW) range = uvec2(max(range.x, max(low + 1u, window) - window), min(range.y, high + window));
  return range;
}

// Queries that see any of the keys from `low` to `high`, or more.
uvec2 queries_seeing(Head head, uint low, uint high) {
  uvec2 range = SEGMENTS ? rows_of_segments(head, low, high) : uvec2(0u, low < head.visible ? queries : 0u);
  if (WINDOW) range = uvec2(max(range.x, max(low + 1u, window) - window), min(range.y, high + window));
  if (CAUSAL) range.x = max(range.x, low);
  return range;
}

#ifdef PASS_keys
uint own_count() { return keys; }
uint other_count() { return queries; }
uint own_head(Head head) { return head.key_head * keys; }
uint other_head(Head head) { return head.query_head * queries; }
uvec2 others_of(Head head, uint low, uint high) { return queries_seeing(head, low, high); }
#define QUERY(own, other) (other)
#define KEY(own, other) (own)
#else
uint own_count() { return queries; }
uint other_count() { return keys; }
uint own_head(Head head) { return head.query_head * queries; }
uint other_head(Head head) { return head.key_head * keys; }
uvec2 others_of(Head head, uint low, uint high) { return keys_seen(head, low, high); }
#define QUERY(own, other) (own)
#define KEY(own, other) (other)
#endif

// The first and the last own row of this workgroup, which has so many.
uvec2 own_ends(uint rows) {
  uint low = linear_group() % own_tiles * rows;
  return uvec2(low, min(low + rows, own_count()) - 1u);
}

// Padded rows of statistics are whole quads.
uint statistic_at(Head head, uint query) { return head.query_head * ((queries + 3u) / 4u * 4u) + query; }

float mask_at(Head head, uint query, uint key) {
  uint row = head.batch * mask_batch + head.query_head % heads * mask_head + query * mask_row;
  return MASK == 2u ? from_quad(mask_rows[row]).x : from_quad(mask_rows[row + key / 4u])[key % 4u];
}

// What dropout multiplies a query's weights for the four keys from `key` on by.
vec4 kept_factors(Head head, uint query, uint key) {
  uint quad = (head.query_head * queries + query) * ((keys + 3u) / 4u) + key / 4u;
  uvec4 noise = quad_noise(uvec2(state.seed_low, state.seed_high), state.attempted, stream, quad);
  return mix(vec4(0.0), vec4(factor), greaterThanEqual(noise, uvec4(dropped)));
}

float sum_of(vec4 v) { return (v.x + v.y) + (v.z + v.w); }

#ifdef PASS_keys
void store_dk(uint at, vec4 v) { dk_rows[at] = to_quad_of(1, v, at); }
#endif

#endif
