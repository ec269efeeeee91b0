#version 450
#extension GL_GOOGLE_include_directive : require
//! CONVERSION = f32_f16 f32_packed f16_f32 packed_f32
#include "common/conversion.glsl"
#include "common/indexing.glsl"

layout(push_constant) uniform Push { uint quads; };
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Y { RESULT_QUAD y[]; };

void main() {
  uint i = linear_invocation();
  if (i < quads) y[i] = to_result(from_quad(x[i]), i);
}
