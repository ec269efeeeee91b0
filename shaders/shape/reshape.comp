#version 440
#extension GL_GOOGLE_include_directive : require
//! BITS = 16 32
#include "common/indexing.glsl"

// The same elements, in the same order, in rows of another length. They are copied as bits, whatever their type.
// Specialized: on a software driver, dividing by a constant is ten times as fast as by a variable.
layout(constant_id = 1) const uint FROM_COLUMNS = 1u;
layout(constant_id = 2) const uint FROM_PITCH = 1u;
layout(constant_id = 3) const uint TO_COLUMNS = 1u;
layout(constant_id = 4) const uint TO_PITCH = 1u;
layout(push_constant) uniform Push { uint quads; };

#ifdef BITS_32
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) writeonly buffer Y { uvec4 y[]; };
uint element(uint i) { return x[i]; }
uvec4 quad_of(uvec4 elements) { return elements; }
#else
layout(std430, binding = 0) readonly buffer X { uint x[]; };
layout(std430, binding = 1) writeonly buffer Y { uvec2 y[]; };
uint element(uint i) { return bitfieldExtract(x[i >> 1], int(i & 1u) * 16, 16); }
uvec2 quad_of(uvec4 elements) { return uvec2(elements.x | elements.y << 16, elements.z | elements.w << 16); }
#endif

void main() {
  uint quad = linear_invocation();
  if (quad >= quads) return;
  uint column = quad * 4u % TO_PITCH;
  uint first = quad * 4u / TO_PITCH * TO_COLUMNS + column;
  uvec4 elements = uvec4(0u);
  for (int i = 0; i < 4; i++) {
    uint at = first + uint(i);
    if (column + uint(i) < TO_COLUMNS) elements[i] = element(at / FROM_COLUMNS * FROM_PITCH + at % FROM_COLUMNS);
  }
  y[quad] = quad_of(elements);
}
