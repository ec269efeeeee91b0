#version 450
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// v = momentum v + g; w -= rate v, but only where v and g have the same sign.
#include "optim/update.glsl"

layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
  float rate;  // multiplies the optimizer's rate
  float momentum;
  float weight_decay;
};

void main() {
  uint i = linear_invocation();
  uint quad = first_quad + i;
  if (i >= quads || !is_updated(quad)) return;
  vec4 w = load_weight(i);
  vec4 g = unscaled_gradient(i, quad);
  vec4 v = momentum * load_moment(i) + g;
  store_moment(i, first_moment + i, v);
  vec4 direction = mix(vec4(0.0), v, greaterThan(v * g, vec4(0.0)));
  store_weight(i, quad, w - rate * optimizer_rate() * (direction + weight_decay * w));
}
