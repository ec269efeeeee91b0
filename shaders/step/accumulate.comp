#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Adds the gradients of a micro-batch to the sums of those before it, in f32. The LAST micro-batch's become the means over
// all, which is where they are rounded. They are not unscaled, neither by the loss scale nor by their tensors' own; what
// is not finite in any micro-batch, or too large for its tensor's scale, is left for the check to find. Where ranks have
// exchanged the sums, the gradients that are there are PART of them already. WEIGHTED, a micro-batch counts as much as
// the part of its rows that do: just as without, where all do.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool FIRST = false;
layout(constant_id = 2) const bool LAST = false;
layout(constant_id = 3) const bool TENSOR_SCALES = false;
layout(constant_id = 4) const bool PART = false;
layout(constant_id = 5) const bool WEIGHTED = false;
layout(push_constant) uniform Push {
  uint first_quad;  // of the bound range, counted over all parameters: keys the noise
  uint quads;
  float micro_batches;
  uint micro_batch;   // this and all below: WEIGHTED only
  uint counts_apart;  // numbers from that of a micro-batch to the next one's
  float rows;         // of each, those that count or not
};
layout(std430, binding = 0) buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 1) buffer Sums { vec4 sums[]; };
layout(std430, binding = 2) readonly buffer Counts { float counts[]; };

// So much that no sum with it, whatever else is in it, is within STORAGE's range.
const float TOO_LARGE = 1e30;

vec4 marked(vec4 gradient) { return mix(gradient, vec4(TOO_LARGE), equal(abs(gradient), vec4(LARGEST_FINITE))); }

float weight(uint of) {
  float count = counts[of * counts_apart];
  return count == rows ? 1.0 : count / rows;
}

// Where none counts, sums are zeros.
float all_weights() {
  float sum = 0.0;
  for (uint i = 0u; i < uint(micro_batches); i++) sum += weight(i);
  return sum > 0.0 ? sum : 1.0;
}

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 sum = PART ? vec4(0.0) : from_quad(gradients[i]);
  if (TENSOR_SCALES) sum = marked(sum);
  if (WEIGHTED && !PART) sum *= weight(micro_batch);
  if (PART) {
    sum = sums[i];
  } else if (!FIRST) {
    sum += sums[i];
  }
  if (LAST) {
    vec4 mean = sum / (WEIGHTED ? all_weights() : micro_batches);
    if (TENSOR_SCALES) mean = within_range(mean, 1.0);
    gradients[i] = to_quad(mean, first_quad + i);
  } else {
    sums[i] = sum;
  }
}
