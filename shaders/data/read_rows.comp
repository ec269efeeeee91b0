#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Reads an input of f32 from an application's memory, and casts it to the input's type.
#include "common/precision.glsl"
#include "data/shared.glsl"

layout(std430, binding = 0) readonly buffer Shared { float shared_elements[]; };
layout(std430, binding = 1) writeonly buffer Input { QUAD result[]; };

void main() {
  uint i = linear_invocation();
  uint quads_per_row = (columns + 3u) / 4u;
  if (i >= rows * quads_per_row) return;
  uint row = i / quads_per_row;
  uint column = i % quads_per_row * 4u;
  vec4 v = vec4(0.0);
  for (uint k = 0u; k < 4u; ++k) {
    if (column + k < columns) v[k] = shared_elements[first + row * columns + column + k];
  }
  result[i] = to_quad(v, i);
}
