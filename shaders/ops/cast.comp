#version 450
#extension GL_GOOGLE_include_directive : require
//! CONVERSION = f32_f16 f32_packed f16_f32 packed_f32
#include "common/conversion.glsl"
#include "common/indexing.glsl"
#include "common/rng.glsl"

layout(constant_id = 1) const bool STOCHASTIC = false;

layout(push_constant) uniform Push {
  uint quads;
  uint stream;
  uvec2 seed;
  uvec2 step_index;
};
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) writeonly buffer Y { RESULT_QUAD y[]; };

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  vec4 v = from_quad(x[i]);
#ifdef to_result_stochastic
  if (STOCHASTIC) {
    y[i] = to_result_stochastic(v, quad_noise(seed, step_index, stream, i));
    return;
  }
#endif
  y[i] = to_result(v);
}
