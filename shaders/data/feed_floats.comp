#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
//! SCALE = plain normalised
// Gathers numbers of f32, normalises them if asked to, and casts them to the input's type. The mean is subtracted
// before the factor is applied: features that differ little from a large mean keep their last bits.
#include "common/precision.glsl"
#include "data/field.glsl"

layout(std430, binding = 1) readonly buffer Source { float source[]; };
layout(std430, binding = 2) writeonly buffer Input { QUAD result[]; };
#if defined(SCALE_normalised)
layout(std430, binding = 3) readonly buffer Normalisation { vec2 mean_and_factor[]; };
#endif

float value(uint row, uint column) {
  if (column >= columns) return 0.0;
  uint n = row * columns + column;
  float v = source[source_of(n)];
#if defined(SCALE_normalised)
  vec2 by = mean_and_factor[n % channels];
  v = (v - by.x) * by.y;
#endif
  return v;
}

void main() {
  uint i = linear_invocation();
  uint quads_per_row = (columns + 3u) / 4u;
  if (i >= rows * quads_per_row) return;
  uint row = i / quads_per_row;
  uint column = i % quads_per_row * 4u;
  vec4 v = vec4(value(row, column), value(row, column + 1u), value(row, column + 2u), value(row, column + 3u));
  result[i] = to_quad(v, i);
}
