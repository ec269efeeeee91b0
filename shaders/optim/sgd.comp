#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// v = momentum v + g; w -= rate v, or rate (g + momentum v) with Nesterov's look-ahead. g holds the weight decay. With the
// SCALE_IN_RATE, g and v keep the loss scale, and the rate is divided by it instead.
#include "optim/update.glsl"

layout(constant_id = 7) const bool MOMENTUM = false;
layout(constant_id = 8) const bool NESTEROV = false;
layout(constant_id = 9) const bool SCALE_IN_RATE = false;
layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
  float rate;  // multiplies the optimizer's rate
  float momentum;
  float weight_decay;
};

float step_rate() { return rate * optimizer_rate(); }

void main() {
  uint i = linear_invocation();
  uint quad = first_quad + i;
  if (i >= quads || !is_updated(quad)) return;
  float scale = SCALE_IN_RATE ? state.loss_scale.x : 1.0;
  vec4 w = load_weight(i);
  vec4 g = (SCALE_IN_RATE ? scaled_gradient(i, quad) : unscaled_gradient(i, quad)) + scale * weight_decay * w;
  vec4 direction = g;
  if (MOMENTUM) {
    vec4 v = momentum * load_moment(i) + g;
    store_moment(i, first_moment + i, v);
    direction = NESTEROV ? g + momentum * v : v;
  }
  store_weight(i, quad, w - step_rate() / scale * direction);
}
