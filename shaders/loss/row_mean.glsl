// The mean over the rows that count. Row r of `statistics` holds the row's value, its label (-1 if the row does not
// count) and the numbers for its gradient; the row after the last holds the weight of a row in the mean, and how many
// rows count.
#include "common/indexing.glsl"

shared vec2 exchanged[256];

// The sum over `lanes` consecutive invocations, returned to each; `lanes` is a power of two. Every invocation of the
// workgroup must call it.
vec2 sum_over(uint lanes, vec2 v) {
  uint i = gl_LocalInvocationID.x;
  if (lanes > 1u) exchanged[i] = v;
  for (uint step = lanes / 2u; step > 0u; step /= 2u) {
    barrier();
    v += exchanged[i ^ step];
    barrier();
    exchanged[i] = v;
  }
  return v;
}

// `total` holds a sum and the number of rows that count.
vec4 mean_of(vec2 total) { return vec4(total.y > 0.0 ? total.x / total.y : 0.0, 0.0, 0.0, 0.0); }
vec4 weight_of(vec2 total) { return vec4(total.y > 0.0 ? 1.0 / total.y : 0.0, total.y, 0.0, 0.0); }
