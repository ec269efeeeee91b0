// Elementwise kernels of one tensor: a shader includes this and defines apply().
#include "common/indexing.glsl"
#include "common/precision.glsl"

// Whether the elements past the last column must be cleared, as apply(0) is not 0.
layout(constant_id = 1) const bool CLEAR_PAD = false;

layout(push_constant) uniform Push {
  uint quads;
  uint quads_per_row;
  uint columns;
  float parameter;
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Y { QUAD y[]; };

vec4 apply(vec4 v);

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 result = apply(from_quad(x[i]));
  if (CLEAR_PAD) result = keep_columns(result, i % quads_per_row * 4u, columns);
  y[i] = to_quad(result, i);
}
