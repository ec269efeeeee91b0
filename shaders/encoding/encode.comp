#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! ENCODING = frequency one_blob spherical_harmonics
//! STORAGE = storages
#define RESULT_BINDING 1
#define FIRST_ARGUMENT 2
#include "common/expression.glsl"
#include "common/mixed_operands.glsl"
#include "encoding/encoding.glsl"

// The features of coordinates.
READ_STORED(0, Positions, positions)

void main() {
  uint i = linear_invocation();
  if (i >= rows * ROW_QUADS) return;
  vec4 position = positions_at(i / ROW_QUADS);
  uint column = i % ROW_QUADS * 4u;
  uint last = COLUMNS - 1u;
  store(i, vec4(feature(position, column), feature(position, min(column + 1u, last)),
                feature(position, min(column + 2u, last)), feature(position, min(column + 3u, last))));
}
