#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// The quads of x in reverse order, with a specialization constant of every number that precision.glsl leaves.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(constant_id = 1) const uint FIRST = 0u;
layout(constant_id = 31) const uint LAST = 0u;
layout(constant_id = 99) const bool REVERSED = false;
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Y { QUAD y[]; };

void main() {
  uint i = linear_invocation();
  if (i > LAST) return;
  y[i] = x[REVERSED ? LAST - i : FIRST];
}
