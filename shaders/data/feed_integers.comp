#version 440
#extension GL_GOOGLE_include_directive : require
//! ELEMENT = u8 u16 u32
// Gathers integers, as they are, into an input of u32: token ids, labels, masks. Narrower ones are read from words.
#include "data/field.glsl"

layout(std430, binding = 1) readonly buffer Source { uint words[]; };
layout(std430, binding = 2) writeonly buffer Input { uvec4 result[]; };

uint element(uint i) {
#if defined(ELEMENT_u8)
  return (words[i >> 2] >> ((i & 3u) * 8u)) & 0xFFu;
#elif defined(ELEMENT_u16)
  return (words[i >> 1] >> ((i & 1u) * 16u)) & 0xFFFFu;
#else
  return words[i];
#endif
}

uint value(uint row, uint column) { return column < columns ? element(source_of(row * columns + column)) : 0u; }

void main() {
  uint i = linear_invocation();
  uint quads_per_row = (columns + 3u) / 4u;
  if (i >= rows * quads_per_row) return;
  uint row = i / quads_per_row;
  uint column = i % quads_per_row * 4u;
  result[i] = uvec4(value(row, column), value(row, column + 1u), value(row, column + 2u), value(row, column + 3u));
}
