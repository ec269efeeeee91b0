#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
#include "common/indexing.glsl"
#include "common/precision.glsl"
#include "encoding/fixed_point.glsl"

// Sums in fixed point as numbers.
layout(push_constant) uniform Push {
  uint elements;
  uint terms;
};
layout(std430, binding = 0) readonly buffer Sums { uvec4 sums[]; };
layout(std430, binding = 1) writeonly buffer Result { QUAD result[]; };

void main() {
  uint i = linear_invocation();
  if (4u * i >= elements) return;
  uint largest = sums[0].x;
  int exponent = exponent_of_sums(largest, terms);
  uvec4 a = sums[FIRST_SUM / 4u + 2u * i];
  uvec4 b = sums[FIRST_SUM / 4u + 2u * i + 1u];
  vec4 v = vec4(from_fixed(a.xy, exponent), from_fixed(a.zw, exponent), from_fixed(b.xy, exponent),
                from_fixed(b.zw, exponent));
  if (largest >= F32_INFINITY) v = keep_columns(vec4(uintBitsToFloat(0x7fc00000u)), 4u * i, elements);
  result[i] = to_quad(v, i);
}
