#version 440
#extension GL_GOOGLE_include_directive : require
// Puts rows {n, g, count, c} in the place of those of x {n, g, positions, c} from position first[n] on. Rows that are
// beyond x are dropped. A row is a number of pairs of words.
#include "common/indexing.glsl"

layout(constant_id = 1) const uint ROW_PAIRS = 1u;
layout(constant_id = 2) const uint COUNT = 1u;
layout(constant_id = 3) const uint GROUPS = 1u;
layout(constant_id = 4) const uint POSITIONS = 1u;
layout(push_constant) uniform Push { uint pairs; };
layout(std430, binding = 0) readonly buffer Rows { uvec2 rows[]; };
layout(std430, binding = 1) readonly buffer First { uint first[]; };
layout(std430, binding = 2) writeonly buffer X { uvec2 x[]; };

void main() {
  uint i = linear_invocation();
  if (i >= pairs) return;
  uint row = i / ROW_PAIRS;
  uint group = row / COUNT;
  uint begin = first[group / GROUPS];
  // Written so that no sum wraps.
  if (begin >= POSITIONS || row % COUNT >= POSITIONS - begin) return;
  x[(group * POSITIONS + begin + row % COUNT) * ROW_PAIRS + i % ROW_PAIRS] = rows[i];
}
