#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Writes an output to an application's memory, as f32.
#include "common/precision.glsl"
#include "data/shared.glsl"

layout(std430, binding = 0) readonly buffer Output { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Shared { float shared_elements[]; };

void main() {
  uint i = linear_invocation();
  uint quads_per_row = (columns + 3u) / 4u;
  if (i >= rows * quads_per_row) return;
  uint row = i / quads_per_row;
  uint column = i % quads_per_row * 4u;
  vec4 v = from_quad(x[i]);
  for (uint k = 0u; k < 4u; ++k) {
    if (column + k < columns) shared_elements[first + row * columns + column + k] = v[k];
  }
}
