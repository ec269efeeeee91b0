#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// RMSProp, with momentum and CENTERED by choice. g holds the weight decay. A quad's states lie side by side: the average
// of g^2, or where CENTERED the variance and the average of g; then the momentum.
#include "optim/update.glsl"

layout(constant_id = 7) const bool MOMENTUM = false;
layout(constant_id = 8) const bool CENTERED = false;
layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
  float rate;  // multiplies the optimizer's rate
  float alpha;
  float epsilon;
  float momentum;
  float weight_decay;
};

float step_rate() { return rate * optimizer_rate(); }

void main() {
  uint i = linear_invocation();
  uint quad = first_quad + i;
  if (i >= quads || !is_updated(quad)) return;
  const uint states = 1u + uint(CENTERED) + uint(MOMENTUM);
  vec4 w = load_weight(i);
  vec4 g = unscaled_gradient(i, quad) + weight_decay * w;
  vec4 square = load_moment(states * i);
  if (CENTERED) {
    // The average of g^2 minus the square of the average m of g, computed without that difference: both follow from g -
    // m.
    vec4 m = load_moment(states * i + 1u);
    vec4 away = g - m;
    square = alpha * (square + (1.0 - alpha) * away * away);
    store_moment(states * i + 1u, first_moment + states * i + 1u, m + (1.0 - alpha) * away);
  } else {
    square = averaged(square, g * g, alpha);
  }
  store_moment(states * i, first_moment + states * i, square);
  vec4 direction = g / (sqrt(square) + epsilon);
  if (MOMENTUM) {
    direction += momentum * load_moment(states * i + states - 1u);
    store_moment(states * i + states - 1u, first_moment + states * i + states - 1u, direction);
  }
  store_weight(i, quad, w - step_rate() * direction);
}
