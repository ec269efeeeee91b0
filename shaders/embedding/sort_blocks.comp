#version 440
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"
#include "embedding/ids.glsl"

// Sorts each block of BLOCK ids, with their positions: the number of ids that come before one is its place. Equal ids
// keep their order.
layout(constant_id = 3) const uint BLOCK = 1u;
layout(push_constant) uniform Push { uint count; };
layout(std430, binding = 0) readonly buffer Ids { uint ids[]; };
layout(std430, binding = 1) writeonly buffer Sorted { uvec2 sorted[]; };  // {id, position}

void main() {
  uint i = linear_invocation();
  if (i >= count) return;
  uint begin = i / BLOCK * BLOCK;
  uint end = min(begin + BLOCK, count);
  uint id = ids[place_of_id(i)];
  uint before = 0u;
  for (uint other = begin; other < end; other++) {
    uint other_id = ids[place_of_id(other)];
    if (other_id < id || (other_id == id && other < i)) before++;
  }
  sorted[begin + before] = uvec2(id, i);
}
