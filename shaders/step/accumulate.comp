#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
// Adds the gradients of a micro-batch to the sums of those before it, in f32. The LAST micro-batch's become the means over
// all, which is where they are rounded. They are not unscaled; an infinity or NaN of any micro-batch is left for the
// check to find.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool FIRST = false;
layout(constant_id = 2) const bool LAST = false;
layout(push_constant) uniform Push {
  uint first_quad;  // of those bound, counted over all parameters: the noise is keyed on it
  uint quads;
  float count;  // micro-batches
};
layout(std430, binding = 0) buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 1) buffer Sums { vec4 sums[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 sum = from_quad(gradients[i]);
  if (!FIRST) sum += sums[i];
  if (LAST) {
    gradients[i] = to_quad(sum / count, first_quad + i);
  } else {
    sums[i] = sum;
  }
}
