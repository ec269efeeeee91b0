// How f16 results are rounded, and what becomes of those that are too large: chosen for each dispatch (plan::Storing).
// A shader that defines NEAREST_ONLY has no code for noise, and is never asked for it.
#ifndef HALFSTEP_NOISE
#define HALFSTEP_NOISE

#include "common/rounding.glsl"

layout(constant_id = 101) const bool SATURATE = false;

#ifdef NEAREST_ONLY
uvec4 rounded_half_bits(vec4 v, uint place) { return half_bits_nearest(v); }
#else
#include "common/rng.glsl"
#include "step/step_state.glsl"

layout(constant_id = 100) const bool STOCHASTIC = false;
layout(set = 1, binding = 0, std140) uniform NoiseKey { StepState noise_key; };
layout(set = 1, binding = 1, std140) uniform NoiseStream { uint noise_stream; };

uvec4 rounded_half_bits(vec4 v, uint place) {
  if (!STOCHASTIC) return half_bits_nearest(v);
  uvec2 seed = uvec2(noise_key.seed_low, noise_key.seed_high);
  return half_bits_stochastic(v, quad_noise(seed, noise_key.attempted, noise_stream, place));
}
#endif

// The bits that are stored for the four numbers of quad `place`.
uvec4 stored_half_bits(vec4 v, uint place) {
  uvec4 bits = rounded_half_bits(v, place);
  return SATURATE ? saturated(bits) : bits;
}

#endif
