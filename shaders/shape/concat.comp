#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"

// The positions of a, then those of b, along one axis.
layout(constant_id = 1) const bool LAST = false;  // whether it is the last axis: rows then start anywhere in a quad
layout(push_constant) uniform Push {
  uint quads;
  uint a_extent;
  uint b_extent;
  uint inner;  // quads from one position to the next, if the axis is not the last
};
layout(std430, binding = 0) readonly buffer A { QUAD a[]; };
layout(std430, binding = 1) readonly buffer B { QUAD b[]; };
layout(std430, binding = 2) writeonly buffer Y { QUAD y[]; };

float element(uint row, uint column) {
  if (column < a_extent) return from_quad(a[row * ((a_extent + 3u) / 4u) + column / 4u])[column % 4u];
  column -= a_extent;
  if (column < b_extent) return from_quad(b[row * ((b_extent + 3u) / 4u) + column / 4u])[column % 4u];
  return 0.0;
}

vec4 in_row(uint i) {
  uint quads_per_row = (a_extent + b_extent + 3u) / 4u;
  uint row = i / quads_per_row;
  uint column = i % quads_per_row * 4u;
  return vec4(element(row, column), element(row, column + 1u), element(row, column + 2u), element(row, column + 3u));
}

vec4 among_rows(uint i) {
  uint position = i / inner % (a_extent + b_extent);
  uint outer = i / inner / (a_extent + b_extent);
  if (position < a_extent) return from_quad(a[(outer * a_extent + position) * inner + i % inner]);
  return from_quad(b[(outer * b_extent + position - a_extent) * inner + i % inner]);
}

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  y[i] = to_quad(LAST ? in_row(i) : among_rows(i), i);
}
