#version 440
#extension GL_GOOGLE_include_directive : require
//! ELEMENT = u32
// Reads an input of integers from an application's memory.
#include "data/shared.glsl"

layout(std430, binding = 0) readonly buffer Shared { uint shared_elements[]; };
layout(std430, binding = 1) writeonly buffer Input { uvec4 result[]; };

void main() {
  uint i = linear_invocation();
  uint quads_per_row = (columns + 3u) / 4u;
  if (i >= rows * quads_per_row) return;
  uint row = i / quads_per_row;
  uint column = i % quads_per_row * 4u;
  uvec4 v = uvec4(0u);
  for (uint k = 0u; k < 4u; ++k) {
    if (column + k < columns) v[k] = shared_elements[first + row * columns + column + k];
  }
  result[i] = v;
}
