#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"

// The gradients of weight and bias from the sums of channel_norm_sums.comp.
layout(push_constant) uniform Push {
  uint quads;
  uint sets;
};
layout(std430, binding = 0) readonly buffer Sums { vec4 sums[]; };
WRITE_STORED(1, WeightGradient, weight_gradient, 0)
WRITE_STORED(2, BiasGradient, bias_gradient, 1)

void main() {
  uint channel = linear_invocation();
  if (channel >= quads) return;
  vec4 total = vec4(0.0);
  vec4 along = vec4(0.0);
  for (uint set = 0u; set < sets; set++) {
    uint plane = set * 2u * quads + channel;
    total += sums[plane];
    along += sums[plane + quads];
  }
  set_weight_gradient(channel, along);
  set_bias_gradient(channel, total);
}
