#version 440
#extension GL_GOOGLE_include_directive : require
#include "common/long_sum.glsl"
#include "loss/row_mean.glsl"

// The second part of loss/row_loss.glsl, for many rows: their mean, by one workgroup. If there are too many for one,
// this runs twice: first each workgroup sums `length` rows, then one workgroup adds those sums.
layout(constant_id = 1) const bool FROM_SUMS = false;  // reads {sum, rows that count}
layout(constant_id = 2) const bool TO_SUMS = false;    // writes {sum, rows that count}
layout(push_constant) uniform Push {
  uint count;   // of rows, or of sums
  uint length;  // read by each workgroup
  uint rows;    // in total
};
layout(std430, binding = 0) readonly buffer Numbers { vec4 numbers[]; };
layout(std430, binding = 1) writeonly buffer Mean { vec4 mean[]; };  // or sums
layout(std430, binding = 2) writeonly buffer Statistics { vec4 statistics[]; };

void main() {
  LongSum sum = EMPTY_SUM;
  uint begin = linear_group() * length;
  if (begin >= count) return;
  uint end = min(begin + length, count);
  for (uint i = begin + gl_LocalInvocationID.x; i < end; i += gl_WorkGroupSize.x) {
    vec4 one = numbers[i];
    if (FROM_SUMS) {
      add_term(sum, vec4(one.xy, 0.0, 0.0));
    } else if (one.y >= 0.0) {
      add_term(sum, vec4(one.x, 1.0, 0.0, 0.0));
    }
  }
  vec2 total = sum_over(gl_WorkGroupSize.x, value_of(sum).xy);
  if (gl_LocalInvocationID.x != 0u) return;
  if (TO_SUMS) {
    mean[linear_group()] = vec4(total, 0.0, 0.0);
  } else {
    mean[0] = mean_of(total);
    statistics[rows] = weight_of(total);
  }
}
