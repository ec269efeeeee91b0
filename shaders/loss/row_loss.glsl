// Kernels that compute one value from each row of logits and its label, and the mean of these values over the rows that
// count. A shader includes this and defines row_value(). The mean is computed here if there is one workgroup, otherwise
// by row_mean.comp.
#include "common/indexing.glsl"
#include "common/long_sum.glsl"
#include "common/precision.glsl"
#include "loss/row_mean.glsl"

// Invocations that share a row; a power of two. Software drivers use 1.
layout(constant_id = 1) const uint LANES = 1u;

layout(push_constant) uniform Push {
  uint rows;
  uint classes;
  uint quads_per_row;
  uint groups;  // workgroups that share the rows; a grid may have more
};
layout(std430, binding = 0) readonly buffer Logits { QUAD logits[]; };
layout(std430, binding = 1) readonly buffer Labels { uvec4 labels[]; };
layout(std430, binding = 2) writeonly buffer Statistics { vec4 statistics[]; };
layout(std430, binding = 3) writeonly buffer Mean { vec4 mean[]; };

const uint IGNORED_LABEL = 0xFFFFFFFFu;
layout(constant_id = 2) const uint ALSO_IGNORED = IGNORED_LABEL;

float minus_infinity() { return uintBitsToFloat(0xFF800000u); }

uint lane() { return gl_LocalInvocationID.x % LANES; }

// Four logits of a row; minus infinity past the last class.
vec4 logits_of(uint row, uint quad) {
  bvec4 real = lessThan(uvec4(quad * 4u) + uvec4(0u, 1u, 2u, 3u), uvec4(classes));
  return mix(vec4(minus_infinity()), from_quad(logits[row * quads_per_row + quad]), real);
}

// The value of a row with a label that counts, and two more numbers for its gradient. Called by all invocations of a
// workgroup uniformly, so it may contain barriers.
vec3 row_value(uint row, uint label);

void main() {
  if (linear_group() >= groups) return;
  uint rows_at_once = gl_WorkGroupSize.x / LANES;
  uint place = gl_LocalInvocationID.x / LANES;
  LongSum sum = EMPTY_SUM;
  uint first = linear_group() * rows_at_once;
  for (; first < rows; first += groups * rows_at_once) {
    uint row = min(first + place, rows - 1u);
    uint label = labels[row >> 2][row & 3u];
    vec3 value = row_value(row, label);
    if (first + place >= rows || lane() != 0u) continue;
    bool counts = label != IGNORED_LABEL && label != ALSO_IGNORED;
    statistics[row] = counts ? vec4(value.x, label, value.yz) : vec4(0.0, -1.0, 0.0, 0.0);
    if (counts) add_term(sum, vec4(value.x, 1.0, 0.0, 0.0));
  }
  if (groups != 1u) return;
  vec2 total = sum_over(gl_WorkGroupSize.x, value_of(sum).xy);
  if (gl_LocalInvocationID.x != 0u) return;
  mean[0] = mean_of(total);
  statistics[rows] = weight_of(total);
}
