#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f16 packed
// Takes an input's values as the host gave them, f32 and padded, and casts them to the type the model computes in.
#include "common/precision.glsl"
#include "common/indexing.glsl"

layout(local_size_x_id = 0) in;
layout(push_constant) uniform Push { uint quads; };
layout(std430, binding = 0) readonly buffer Values { vec4 values[]; };
layout(std430, binding = 1) writeonly buffer Input { QUAD result[]; };

void main() {
  uint i = linear_invocation();
  if (i < quads) result[i] = to_quad(values[i], i);
}
