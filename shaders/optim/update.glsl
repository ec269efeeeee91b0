// What every optimizer's kernel shares: the weights, in whichever form they are kept, and the gradient, unscaled in f32.
// The including shader has the axis `//! STORAGE = storages`, the type of gradients and of the weights that
// operators read.
#ifndef HALFSTEP_UPDATE
#define HALFSTEP_UPDATE

#include "common/precision.glsl"
#include "common/indexing.glsl"
#include "common/rng.glsl"
#include "optim/optimizer_state.glsl"
#include "step/step_state.glsl"

layout(local_size_x_id = 0) in;
// Weights are stored in f32 (with a copy in STORAGE, unless that is also f32), or only in STORAGE.
layout(constant_id = 1) const bool MASTER = true;
layout(constant_id = 2) const bool COPY = false;
// Moments are stored in f32, or in STORAGE with the rounding for optimizer states.
layout(constant_id = 3) const bool NARROW_MOMENTS = false;
layout(constant_id = 4) const bool STOCHASTIC_MOMENTS = false;
#define SCALES_CONSTANT 5
#define SCALES_BINDING 5
#include "step/block_scales.glsl"

// Which of the trainer's optimizers this is; 0 is its own.
layout(constant_id = 6) const uint OPTIMIZER = 0u;

layout(std430, binding = 0) readonly buffer State {
  StepState state;
  OptimizerState others[];
};
layout(std430, binding = 1) readonly buffer Gradients { QUAD gradients[]; };
layout(std430, binding = 2) buffer Masters { vec4 masters[]; };
layout(std430, binding = 3) buffer Weights { QUAD weights[]; };
layout(std430, binding = 4) buffer Moments { vec4 moments[]; };
layout(std430, binding = 4) buffer NarrowMoments { QUAD narrow_moments[]; };

// Whether quad `quad`, counted over all parameters, is updated in this step.
bool is_updated(uint quad) { return state.overflow == 0u && !is_skipped(quad); }

// The optimizer's rate in this step.
float optimizer_rate() { return OPTIMIZER == 0u ? state.rate : others[max(OPTIMIZER, 1u) - 1u].rate; }

// Where an average moves to with `now`, of weight 1 - beta. GLSL's mix may be computed as now + beta (before - now), which
// leaves few bits of a small 1 - beta.
vec4 averaged(vec4 before, vec4 now, float beta) { return beta * before + (1.0 - beta) * now; }

// Adam's bias correction: 1 - beta^t, with t the updates made so far and this one. It takes the logarithm of beta, since
// a product of f32 betas, of which each is near 1, would be off by far more than its difference from 1 can bear.
float bias_correction(float log_beta) {
  float x = max(log_beta * (float(state.applied) + 1.0), -100.0);
  if (x < -1.0) return 1.0 - exp(x);
  // x + x^2 / 2! + ... + x^10 / 10!, without the cancellation of exp(x) - 1.
  float sum = 1.0 + x / 10.0;
  sum = 1.0 + sum * x / 9.0;
  sum = 1.0 + sum * x / 8.0;
  sum = 1.0 + sum * x / 7.0;
  sum = 1.0 + sum * x / 6.0;
  sum = 1.0 + sum * x / 5.0;
  sum = 1.0 + sum * x / 4.0;
  sum = 1.0 + sum * x / 3.0;
  sum = 1.0 + sum * x / 2.0;
  return -x * sum;
}

// Clipped by the limit on the gradients' norm; still multiplied by the loss scale. Factor by factor, here and below: of a
// large gradient, the product of the factors alone may be subnormal, or 0.
vec4 scaled_gradient(uint i, uint quad) { return from_quad(gradients[i]) * gradient_unscale(quad) * state.clip; }
vec4 unscaled_gradient(uint i, uint quad) {
  return from_quad(gradients[i]) * gradient_unscale(quad) * (1.0 / state.loss_scale.x) * state.clip;
}

vec4 load_weight(uint i) { return MASTER ? masters[i] : from_quad(weights[i]); }

// `quad` is i counted over all parameters; it keys the noise.
void store_weight(uint i, uint quad, vec4 w) {
  if (MASTER) masters[i] = w;
  if (COPY || !MASTER) weights[i] = to_quad(w, quad);
}

vec4 load_moment(uint i) { return NARROW_MOMENTS ? from_quad(narrow_moments[i]) : moments[i]; }

// Infinities as the largest number of their sign: an infinite average of squares would stay so, and hold its weight for
// good. No loss scale learns of it.
vec4 finite_moment(vec4 v) {
  uvec4 bits = floatBitsToUint(v);
  return uintBitsToFloat(mix(bits, bits - 1u, equal(bits & 0x7fffffffu, uvec4(F32_INFINITY))));
}

// `place` is i counted over the moments of all parameters, which is first_moment more; it keys the noise.
#ifndef NARROW
void store_moment(uint i, uint place, vec4 v) { moments[i] = finite_moment(v); }
#else
uvec4 moment_bits(vec4 v, uint place) {
  uvec2 seed = uvec2(state.seed_low, state.seed_high);
  uvec4 bits = STOCHASTIC_MOMENTS
                   ? bits_stochastic(v, quad_noise(seed, state.attempted, STREAM_MOMENT_ROUNDING, place))
                   : bits_nearest(v);
  return saturated(bits);  // as finite_moment()
}

void store_moment(uint i, uint place, vec4 v) {
  if (NARROW_MOMENTS) {
    narrow_moments[i] = quad_of_bits(moment_bits(v, place));
  } else {
    moments[i] = finite_moment(v);
  }
}
#endif

#endif
