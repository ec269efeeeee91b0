#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// Adam, and AdamW where the decay is DECOUPLED. A quad's first and second moments lie side by side.
#include "optim/update.glsl"

layout(constant_id = 7) const bool DECOUPLED = false;
layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
  float rate;  // multiplies the optimizer's rate
  float beta1;
  float beta2;
  float epsilon;
  float weight_decay;
  float log_beta1;
  float log_beta2;
};

float step_rate() { return rate * optimizer_rate(); }

void main() {
  uint i = linear_invocation();
  uint quad = first_quad + i;
  if (i >= quads || !is_updated(quad)) return;
  vec4 w = load_weight(i);
  vec4 g = unscaled_gradient(i, quad);
  if (DECOUPLED) {
    w -= step_rate() * weight_decay * w;
  } else {
    g += weight_decay * w;
  }
  vec4 m = averaged(load_moment(2u * i), g, beta1);
  vec4 v = averaged(load_moment(2u * i + 1u), g * g, beta2);
  store_moment(2u * i, first_moment + 2u * i, m);
  store_moment(2u * i + 1u, first_moment + 2u * i + 1u, v);
  vec4 m_hat = m / bias_correction(log_beta1);
  vec4 v_hat = v / bias_correction(log_beta2);
  store_weight(i, quad, w - step_rate() * m_hat / (sqrt(v_hat) + epsilon));
}
