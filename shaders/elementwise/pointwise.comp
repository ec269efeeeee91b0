#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// A chain of elementwise operators and broadcasts: see common/expression.glsl.
layout(push_constant) uniform Push {
  uint quads;
  // Term t of an argument's index: at / divisor % extent * stride.
  uint divisors[8];
  uint extents[8];
  uint strides[8];
};
#define TERM(t, at) (at / divisors[t] % extents[t] * strides[t])
#define RESULT_BINDING 0
#define FIRST_ARGUMENT 1
#include "common/expression.glsl"

void main() {
  uint i = linear_invocation();
  if (i < quads) store(i, vec4(0.0));
}
