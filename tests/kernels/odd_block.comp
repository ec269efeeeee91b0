#version 450
// Push constants of which the last in memory is declared first, and a matrix whose columns lie apart.
layout(local_size_x_id = 0) in;
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) readonly buffer S { vec4 s[]; };
layout(std430, binding = 2) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform Push {
  layout(offset = 16) mat3 m;
  layout(offset = 0) uint quads;
};

void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < quads) y[i] = x[i] * s[i] * m[2][2];
}
