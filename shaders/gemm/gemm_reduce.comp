#version 440
#extension GL_EXT_shader_integer_mix : require
//! STORAGE = f32 words
// Adds up the partial results of a product whose k was cut into parts, in order, and the bias; what the expression
// makes of that is stored. Sums of columns come as one more row: see gemm/gemm.glsl.
#extension GL_GOOGLE_include_directive : require
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"

layout(local_size_x_id = 0) in;
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

void main() {
  int at = int(linear_invocation());
  if (at < part_quads) {
    vec4 sum = ADD_BIAS ? from_quad(edge[at % pitch]) : vec4(0.0);
    int split = 0;
    do {
      sum += parts[split * part_quads + at];
      if (PARTIALS_IN_F16) sum = rounded_to_half(sum);
      split++;
    } while (split < splits);
    if (at < quads) {
      store(uint(at), sum);
    } else {
      edge[at - quads] = to_quad_of(1, WITHOUT_PAD(sum, uint(at)), at);
    }
  }
}
