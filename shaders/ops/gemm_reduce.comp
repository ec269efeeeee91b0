#version 450
//! STORAGE = f32 packed
// Adds up the partial results of a product whose k was cut into parts, in order, and the bias.
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"
#include "common/precision.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool ADD_BIAS = false;
layout(constant_id = 2) const bool RESULT_IN_F32 = false;
layout(constant_id = 3) const bool PARTIALS_IN_F16 = false;

layout(push_constant) uniform Push {
  int quads;   // of the result
  int splits;  // partial results
  int pitch;   // quads of a row of the result
};

layout(std430, binding = 0) readonly buffer Parts { vec4 parts[]; };
layout(std430, binding = 1) writeonly buffer C { QUAD c[]; };
layout(std430, binding = 1) writeonly buffer CF32 { vec4 c_f32[]; };
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
    if (RESULT_IN_F32) {
      c_f32[at] = sum;
    } else {
      c[at] = to_quad(sum, at);
    }
  }
}
