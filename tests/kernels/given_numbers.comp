#version 450
#extension GL_GOOGLE_include_directive : require
// Numbers that come in each of the ways that numbers can be given to a kernel, times `factor`.
#include "common/indexing.glsl"

struct Numbers {
  float single;
  float several[3];
  mat2 matrix;
};
layout(constant_id = 1) const float SPECIALIZED = 0.0;
layout(std430, binding = 0) readonly buffer X { Numbers x[]; };
layout(std430, binding = 1) writeonly buffer Y { float y[]; };
layout(push_constant) uniform Push {
  uint count;
  float pushed;
  float factor;
};

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  Numbers numbers = x[i];  // as a whole
  y[12 * i] = numbers.single * factor;
  for (uint k = 0; k < 3; ++k) y[12 * i + 1 + k] = numbers.several[k] * factor;
  for (uint k = 0; k < 4; ++k) y[12 * i + 4 + k] = numbers.matrix[k / 2][k % 2] * factor;
  y[12 * i + 8] = pushed * factor;
  y[12 * i + 9] = SPECIALIZED * factor;
  y[12 * i + 10] = 1e-39 * factor;
  y[12 * i + 11] = factor;
}
