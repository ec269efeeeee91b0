#version 440
#extension GL_GOOGLE_include_directive : require
#include "norm/channel_groups.glsl"
#include "common/long_sum.glsl"

// Mean and inverse std of a group, for each of its channels, from the moments of the channels. Of the means, differences
// from the first are summed, as row_norm.comp does.
layout(std430, binding = 0) readonly buffer Moments { float moments[]; };
layout(std430, binding = 1) writeonly buffer Statistics { float statistics[]; };

void main() {
  uint invocation = linear_invocation();
  if (invocation >= invocations) return;
  Group group = group_of(invocation);
  float size = float(group.end - group.begin);
  float first = moments[group.plane + group.begin];
  LongSum total = EMPTY_SUM;
  for (uint c = group.begin; c < group.end; c++) add_term(total, vec4(moments[group.plane + c] - first));
  float mean = first + value_of(total).x / size;
  LongSum squares = EMPTY_SUM;
  for (uint c = group.begin; c < group.end; c++) {
    float difference = moments[group.plane + c] - mean;
    add_term(squares, vec4(moments[group.plane + pitch() + c] + rows * difference * difference));
  }
  float inverse = 1.0 / sqrt(value_of(squares).x / (rows * size) + epsilon);
  for (uint c = group.begin; c < written_end(group); c++) {
    statistics[group.plane + c] = c < group.end ? mean : 0.0;
    statistics[group.plane + pitch() + c] = c < group.end ? inverse : 0.0;
  }
}
