#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "norm/channel_groups.glsl"
#include "common/precision.glsl"
#include "common/long_sum.glsl"

// The means of weight dy, and of weight dy times the normalised x, over a group, for each of its channels, from the
// sums of channel_norm_sums.comp.
layout(std430, binding = 0) readonly buffer Sums { float sums[]; };
layout(std430, binding = 1) readonly buffer Weight { QUAD weight[]; };
layout(std430, binding = 2) writeonly buffer Means { float means[]; };

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Group group = group_of(invocation);
  LongSum total = EMPTY_SUM;
  for (uint c = group.begin; c < group.end; c++) {
    vec2 sum = vec2(sums[group.plane + c], sums[group.plane + pitch() + c]);
    add_term(total, from_quad(weight[c / 4u])[c % 4u] * sum.xyxy);
  }
  vec2 mean = value_of(total).xy / (rows * float(group.end - group.begin));
  for (uint c = group.begin; c < written_end(group); c++) {
    means[group.plane + c] = c < group.end ? mean.x : 0.0;
    means[group.plane + pitch() + c] = c < group.end ? mean.y : 0.0;
  }
}
