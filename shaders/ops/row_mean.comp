#version 450
#extension GL_GOOGLE_include_directive : require
#include "common/row_mean.glsl"

// The second half of common/rows.glsl, for many rows; one workgroup.
layout(push_constant) uniform Push { uint rows; };
layout(std430, binding = 0) buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 1) writeonly buffer Mean { vec4 mean[]; };

void main() {
  vec2 total = vec2(0.0);
  for (uint row = gl_LocalInvocationID.x; row < rows; row += gl_WorkGroupSize.x) {
    vec4 one = statistics[row];
    if (one.y >= 0.0) total += vec2(one.x, 1.0);
  }
  total = sum_over(gl_WorkGroupSize.x, total);
  if (gl_LocalInvocationID.x != 0u) return;
  mean[0] = mean_of(total);
  statistics[rows] = weight_of(total);
}
