#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"
#include "embedding/ids.glsl"

// The rows of a table that ids name. An id that is no row gives NaN, as a label that is no class does in losses; the
// ignored id gives zeros.
layout(constant_id = 3) const uint ROW_QUADS = 1u;  // of the table
layout(push_constant) uniform Push {
  uint quads;
  uint table_rows;
};
layout(std430, binding = 0) readonly buffer Table { QUAD table[]; };
layout(std430, binding = 1) readonly buffer Ids { uint ids[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uint id = ids[place_of_id(i / ROW_QUADS)];
  vec4 v = vec4(id == IGNORED_ID ? 0.0 : uintBitsToFloat(0x7fc00000u));
  if (id < table_rows) v = from_quad(table[id * ROW_QUADS + i % ROW_QUADS]);
  store(i, v);
}
