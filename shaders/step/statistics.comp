#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! STORAGE = storages
// What is known of a tensor's numbers, each workgroup's share of them: a row of step/statistics.glsl.
#include "common/indexing.glsl"
#include "common/math.glsl"
#include "common/precision.glsl"
#include "step/norm.glsl"
#include "step/statistics.glsl"

// What is subnormal, and large, in STORAGE; for f32 tensors in f16, which they might have been stored in.
#ifdef NARROW
#define SMALL_BELOW SMALLEST_NORMAL
#define LARGE_FROM floatBitsToUint(LARGEST_FINITE)
#else
#define SMALL_BELOW F32_HALF_NORMAL
#define LARGE_FROM floatBitsToUint(65504.0)
#endif

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push {
  uint quads;
  uint quads_per_row;
  uint columns;
  uint groups;  // workgroups that share the quads; a grid may have more
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Rows { int rows[]; };

shared int row[ROW_WORDS];
shared vec2 sums[256];
shared vec3 sums_of_squares[256];

// The statistics of one invocation; words 0 to BIN_0 of a row, without the sums.
int found[BIN_0];
vec2 sum;  // of magnitudes: below 2^48, and others; of a run of quads, as in common/long_sum.glsl
vec3 squares;
const uint RUN_QUADS = 32u;

void look_at(float v) {
  uint magnitude = floatBitsToUint(v) & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {
    found[magnitude == 0x7f800000u ? INFINITIES : NANS]++;
    return;
  }
  int order = order_of(vec4(v)).x;
  found[SMALLEST] = min(found[SMALLEST], order);
  found[LARGEST] = max(found[LARGEST], order);
  sum += magnitude < LARGE_NUMBERS ? vec2(abs(v), 0.0) : vec2(0.0, abs(v) * SHRUNK);
  squares += squares_of(v);
  if (magnitude == 0u) {
    found[ZEROS]++;
    return;
  }
  if (magnitude < SMALL_BELOW) found[SUBNORMALS]++;
  if (magnitude >= LARGE_FROM) found[LARGE]++;
  int exponent = int(magnitude >> 23) - 127;
  atomicAdd(row[BIN_0 + clamp(exponent - FIRST_EXPONENT, 0, BINS - 1)], 1);
}

void main() {
  if (linear_group() >= groups) return;
  uint me = gl_LocalInvocationID.x;
  for (uint i = me; i < uint(ROW_WORDS); i += gl_WorkGroupSize.x) row[i] = empty_word(int(i));
  [[unroll]] for (int i = 0; i < BIN_0; i++) found[i] = empty_word(i);
  sum = vec2(0.0);
  squares = vec3(0.0);
  barrier();
  vec2 sum_of_runs = vec2(0.0);
  vec3 squares_of_runs = vec3(0.0);
  uint in_run = 0u;
  uint stride = groups * gl_WorkGroupSize.x;
  for (uint i = linear_group() * gl_WorkGroupSize.x + me; i < quads; i += stride) {
    vec4 v = from_quad(x[i]);
    uint column = i % quads_per_row * 4u;
    [[unroll]] for (uint j = 0u; j < 4u; j++) {
      if (column + j < columns) look_at(v[j]);
    }
    if (++in_run == RUN_QUADS) {
      sum_of_runs += sum;
      squares_of_runs += squares;
      sum = vec2(0.0);
      squares = vec3(0.0);
      in_run = 0u;
    }
  }
  atomicMin(row[SMALLEST], found[SMALLEST]);
  atomicMax(row[LARGEST], found[LARGEST]);
  [[unroll]] for (int i = ZEROS; i <= NANS; i++) atomicAdd(row[i], found[i]);
  sums[me] = sum_of_runs + sum;
  sums_of_squares[me] = squares_of_runs + squares;
  barrier();
  if (me == 0u) {
    // In order, so that the same values give the same bits.
    sum = vec2(0.0);
    squares = vec3(0.0);
    for (uint i = 0u; i < gl_WorkGroupSize.x; i++) {
      sum += sums[i];
      squares += sums_of_squares[i];
    }
    [[unroll]] for (int i = 0; i < 2; i++) row[SUM + i] = floatBitsToInt(sum[i]);
    [[unroll]] for (int i = 0; i < 3; i++) row[SQUARES + i] = floatBitsToInt(squares[i]);
  }
  barrier();
  uint begin = linear_group() * uint(ROW_WORDS);
  for (uint i = me; i < uint(ROW_WORDS); i += gl_WorkGroupSize.x) rows[begin + i] = row[i];
}
