#version 450
#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require
#extension GL_GOOGLE_include_directive : require
// Has a specialization constant of 16 bits, and one that says how long an array in shared memory is.
#include "common/indexing.glsl"

layout(constant_id = 1) const uint LENGTH = 1u;
layout(constant_id = 2) const int16_t SHORT = int16_t(1);
shared uint values[LENGTH];
layout(std430, binding = 0) readonly buffer X { vec4 x[]; };
layout(std430, binding = 1) readonly buffer S { vec4 s[]; };
layout(std430, binding = 2) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform Push { uint quads; };

void main() {
  uint i = linear_invocation();
  values[gl_LocalInvocationID.x % LENGTH] = i;
  barrier();
  if (i < quads) y[i] = x[i] * s[i] * float(SHORT) * float(values[0]);
}
