#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/long_sum.glsl"
#include "common/precision.glsl"

// For each row of the table, the sum of the gradients at the positions with its id, in the order of positions: one by
// one up to a multiple of `length` entries, then as embedding_parts.comp has summed them.
layout(constant_id = 1) const uint ROW_QUADS = 1u;
layout(push_constant) uniform Push {
  uint quads;
  uint length;
};
layout(std430, binding = 0) readonly buffer Sorted { uvec2 sorted[]; };  // {id, position}
layout(std430, binding = 1) readonly buffer Begins { uint begins[]; };
layout(std430, binding = 2) readonly buffer DY { QUAD dy[]; };
layout(std430, binding = 3) readonly buffer Parts { vec4 parts[]; };
layout(std430, binding = 4) writeonly buffer Gradient { QUAD gradient[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uint id = i / ROW_QUADS;
  uint quad = i % ROW_QUADS;
  uint at = begins[id];
  uint end = begins[id + 1u];
  uint alone = min((at + length - 1u) / length * length, end);
  LongSum sum = EMPTY_SUM;
  for (; at < alone; at++) add_term(sum, from_quad(dy[sorted[at].y * ROW_QUADS + quad]));
  for (; at < end; at += length) add_term(sum, parts[at / length * ROW_QUADS + quad]);
  gradient[i] = to_quad(value_of(sum), i);
}
