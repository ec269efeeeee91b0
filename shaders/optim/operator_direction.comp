#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// w -= rate (direction + weight_decay w), where operators computed the direction of a parameter.
#include "optim/update.glsl"

layout(std430, binding = 6) readonly buffer Direction { vec4 direction[]; };
layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
  float rate;  // multiplies the optimizer's rate
  float weight_decay;
};

void main() {
  uint i = linear_invocation();
  uint quad = first_quad + i;
  if (i >= quads || !is_updated(quad)) return;
  vec4 w = load_weight(i);
  store_weight(i, quad, w - rate * optimizer_rate() * (direction[i] + weight_decay * w));
}
