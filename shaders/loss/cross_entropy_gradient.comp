#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/math.glsl"
#include "common/precision.glsl"

// (softmax(logits) - target) * cotangent / rows that count; `statistics` are those of cross_entropy.comp.
// The target is 1 - SMOOTHING for the label, and SMOOTHING is spread over all classes.
layout(constant_id = 1) const float SMOOTHING = 0.0;
layout(push_constant) uniform Push {
  uint rows;
  uint classes;
  uint quads_per_row;
};
layout(std430, binding = 0) readonly buffer Logits { QUAD logits[]; };
layout(std430, binding = 1) readonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 2) readonly buffer Cotangent { vec4 cotangent[]; };
layout(std430, binding = 3) writeonly buffer Gradient { QUAD gradient[]; };

void main() {
  uint i = linear_invocation();
  if (i >= rows * quads_per_row) return;
  uint row = i / quads_per_row;
  uint column = i % quads_per_row * 4u;
  float label = statistics[row].y;
  float top = statistics[row].z;
  float log_sum = statistics[row].w;
  bvec4 is_label = equal(vec4(column) + vec4(0.0, 1.0, 2.0, 3.0), vec4(label));
  precise vec4 below = from_quad(logits[i]) - top;
  vec4 v = exp_or_nan(below - log_sum) - mix(vec4(0.0), vec4(1.0 - SMOOTHING), is_label) -
           SMOOTHING / float(classes);
  v *= cotangent[0].x * statistics[rows].x;
  gradient[i] = to_quad(label < 0.0 ? vec4(0.0) : keep_columns(v, column, classes), i);
}
