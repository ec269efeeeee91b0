#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// w -= rate (sign(beta1 m + (1 - beta1) g) + weight_decay w); m = beta2 m + (1 - beta2) g. The sign of 0 is 0.
#include "optim/update.glsl"

layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
  float rate;  // multiplies the optimizer's rate
  float beta1;
  float beta2;
  float weight_decay;
};

float step_rate() { return rate * optimizer_rate(); }

void main() {
  uint i = linear_invocation();
  uint quad = first_quad + i;
  if (i >= quads || !is_updated(quad)) return;
  vec4 w = load_weight(i);
  vec4 g = unscaled_gradient(i, quad);
  vec4 m = load_moment(i);
  store_moment(i, first_moment + i, averaged(m, g, beta2));
  store_weight(i, quad, w - step_rate() * (sign(averaged(m, g, beta1)) + weight_decay * w));
}
