// What every optimizer's kernel shares: the weights, in whichever form they are kept, and the gradient, unscaled in f32.
// The including shader has the axis `//! STORAGE = f32 f16 packed`, the type of gradients and of the weights that
// operators read.
#ifndef HALFSTEP_UPDATE
#define HALFSTEP_UPDATE

#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "common/rng.glsl"
#include "step/step_state.glsl"

layout(local_size_x_id = 0) in;
// Weights are kept in f32 (with a copy in STORAGE, unless that is f32 too), or in STORAGE alone, rounded stochastically.
layout(constant_id = 1) const bool MASTER = true;
layout(constant_id = 2) const bool COPY = false;

layout(std430, binding = 0) readonly buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 2) buffer Masters { vec4 masters[]; };
layout(std430, binding = 3) buffer Weights { QUAD weights[]; };
layout(std430, binding = 4) buffer Moments { vec4 moments[]; };

vec4 unscaled_gradient(uint i) { return from_quad(gradients[i]) * (state.clip / state.loss_scale.x); }

vec4 load_weight(uint i) { return MASTER ? masters[i] : from_quad(weights[i]); }

// `quad` is i counted over all parameters, which the noise is keyed on.
void store_weight(uint i, uint quad, vec4 w) {
  if (MASTER) {
    masters[i] = w;
    if (COPY) weights[i] = to_quad(w);
  } else {
    uvec4 noise = quad_noise(uvec2(state.seed_low, state.seed_high), state.attempted, STREAM_WEIGHT_ROUNDING, quad);
    weights[i] = to_quad_stochastic(w, noise);
  }
}

#endif
