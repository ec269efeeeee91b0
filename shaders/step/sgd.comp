#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = f32 f16 packed
// v = momentum v + g; w -= rate v, or rate (g + momentum v) with Nesterov's look-ahead. g holds the weight decay.
#include "step/update.glsl"

layout(constant_id = 3) const bool MOMENTUM = false;
layout(constant_id = 4) const bool NESTEROV = false;
layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  float rate;  // what the step's is multiplied by
  float momentum;
  float weight_decay;
};

float step_rate() { return rate * state.rate; }

void main() {
  uint i = linear_invocation();
  if (i >= quads || state.overflow != 0u) return;
  vec4 w = load_weight(i);
  vec4 g = unscaled_gradient(i) + weight_decay * w;
  vec4 direction = g;
  if (MOMENTUM) {
    vec4 v = momentum * moments[i] + g;
    moments[i] = v;
    direction = NESTEROV ? g + momentum * v : v;
  }
  store_weight(i, first_quad + i, w - step_rate() * direction);
}
