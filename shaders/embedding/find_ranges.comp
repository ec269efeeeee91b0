#version 440
#extension GL_GOOGLE_include_directive : require
#include "common/indexing.glsl"

// For each id from 0 to ids - 1, where its entries begin among sorted ones.
layout(push_constant) uniform Push {
  uint count;
  uint ids;
};
layout(std430, binding = 0) readonly buffer Sorted { uvec2 sorted[]; };  // {id, position}
layout(std430, binding = 1) writeonly buffer Begins { uint begins[]; };

void main() {
  uint id = linear_invocation();
  if (id >= ids) return;
  uint low = 0u;
  uint high = count;
  while (low < high) {
    uint middle = (low + high) / 2u;
    if (sorted[middle].x < id) {
      low = middle + 1u;
    } else {
      high = middle;
    }
  }
  begins[id] = low;
}
