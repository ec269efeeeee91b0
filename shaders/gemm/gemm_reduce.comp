#version 440
#extension GL_EXT_shader_integer_mix : require
//! STORAGE = f32 words
// Adds up the partial results of a product whose k was cut into parts, in order, and the bias; what the expression
// makes of that is stored. Sums of columns come as one more row: see gemm/gemm.glsl. LANES invocations share a quad, of
// which each adds every LANES-th part.
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"
#include "common/columns.glsl"
#include "common/long_sum.glsl"

layout(constant_id = 1) const uint EDGE = 0u;
layout(constant_id = 2) const bool PARTIALS_IN_F16 = false;

layout(push_constant) uniform Push {
  int quads;       // of the result
  int part_quads;  // of a partial result
  int splits;      // partial results
  int pitch;       // quads of a row of the result
};

layout(std430, binding = 0) readonly buffer Parts { vec4 parts[]; };
layout(std430, binding = 2) buffer Edge { QUAD edge[]; };
const bool ADD_BIAS = EDGE == 1u;

// The sum of a lane's parts, and the first lane's bias.
vec4 sum_of_lane(int at) {
  vec4 sum = ADD_BIAS && lane() == 0u ? from_quad(edge[at % pitch]) : vec4(0.0);
  if (TERMS == 0u) {
    LongSum all = LongSum(vec4(0.0), sum, 0u);
    int split = int(lane());
    do {
      vec4 part = parts[split * part_quads + at];
      if (PARTIALS_IN_F16) {
        all.run = rounded_to_half(all.run + part);
      } else {
        add_term(all, part);
      }
      split += int(LANES);
    } while (split < splits);
    sum = value_of(all);
  } else {
    // Past the last part, that is read again: a branch would keep reads apart.
    [[unroll]] for (uint t = 0u; t < TERMS; t++) {
      int split = int(lane() + t * LANES);
      vec4 part = parts[min(split, splits - 1) * part_quads + at];
      sum += split < splits ? part : vec4(0.0);
    }
  }
  return sum;
}

void main() {
  int at = int(work_unit() * TOGETHER + in_unit());
  bool is_there = at < part_quads;
  vec4 sum = vec4(0.0);
  if (is_there) sum = sum_of_lane(at);
  sum = sum_over_lanes(sum);
  if (!is_there || lane() != 0u) return;
  if (at < quads) {
    store(uint(at), sum);
  } else {
    edge[at - quads] = to_quad_of(1, WITHOUT_PAD(sum, uint(at)), at);
  }
}
