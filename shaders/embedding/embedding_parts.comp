#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/long_sum.glsl"
#include "common/precision.glsl"

// Of every `length` sorted entries: the sum of the gradients at the positions that have the first one's id. So a row
// that many positions share is not summed by one invocation alone.
layout(constant_id = 1) const uint ROW_QUADS = 1u;
layout(push_constant) uniform Push {
  uint invocations;
  uint count;
  uint length;
};
layout(std430, binding = 0) readonly buffer Sorted { uvec2 sorted[]; };  // {id, position}
layout(std430, binding = 1) readonly buffer DY { QUAD dy[]; };
layout(std430, binding = 2) writeonly buffer Parts { vec4 parts[]; };

void main() {
  uint i = linear_invocation();
  if (i >= invocations) return;
  uint begin = i / ROW_QUADS * length;
  uint end = min(begin + length, count);
  uint id = sorted[begin].x;
  LongSum sum = EMPTY_SUM;
  for (uint at = begin; at < end && sorted[at].x == id; at++) {
    add_term(sum, from_quad(dy[sorted[at].y * ROW_QUADS + i % ROW_QUADS]));
  }
  parts[i] = value_of(sum);
}
