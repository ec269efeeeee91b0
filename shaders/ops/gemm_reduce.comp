#version 450
//! STORAGE = f32 packed
// Adds up the partial results of a product whose k was cut into parts, in order, and the bias; what the expression
// makes of that is stored.
#extension GL_GOOGLE_include_directive : require
#define RESULT_BINDING 1
#define FIRST_SLOT 3
#include "common/expression.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool ADD_BIAS = false;
layout(constant_id = 2) const bool PARTIALS_IN_F16 = false;

layout(push_constant) uniform Push {
  int quads;   // of the result
  int splits;  // partial results
  int pitch;   // quads of a row of the result
};

layout(std430, binding = 0) readonly buffer Parts { vec4 parts[]; };
layout(std430, binding = 2) readonly buffer Bias { QUAD bias[]; };

void main() {
  int at = int(linear_invocation());
  if (at < quads) {
    vec4 sum = ADD_BIAS ? from_quad(bias[at % pitch]) : vec4(0.0);
    int split = 0;
    do {
      sum += parts[split * quads + at];
      if (PARTIALS_IN_F16) sum = from_half_bits(half_bits_nearest(sum));
      split++;
    } while (split < splits);
    store(uint(at), sum);
  }
}
