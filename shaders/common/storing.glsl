// How results of a NARROW type are stored: how they are rounded, what becomes of those that are too large, and whether
// they are times a scale of their tensor's own; chosen for each dispatch (plan::Storing). A shader that defines
// NEAREST_ONLY has no code for noise, and is never asked for it.
#ifndef HALFSTEP_STORING
#define HALFSTEP_STORING

layout(constant_id = 101) const bool SATURATE = false;
layout(constant_id = 102) const bool SCALED = false;
// Of the dispatch: the streams of noise of its first two results, and the places of their scales in the table, 0 for
// none.
layout(set = 1, binding = 1, std140) uniform StoringKey {
  uvec2 noise_streams;
  uvec2 scale_places;
};
layout(set = 1, binding = 2, std140) uniform Scales { vec4 scales[1024]; };

#ifdef NEAREST_ONLY
uvec4 rounded_bits(vec4 v, uint place, uint result) { return bits_nearest(v); }
#else
#include "common/rng.glsl"
#include "step/step_state.glsl"

layout(constant_id = 100) const bool STOCHASTIC = false;
layout(set = 1, binding = 0, std140) uniform NoiseKey { StepState noise_key; };

uvec4 rounded_bits(vec4 v, uint place, uint result) {
  if (!STOCHASTIC) return bits_nearest(v);
  uvec2 seed = uvec2(noise_key.seed_low, noise_key.seed_high);
  uint stream = noise_streams[result & 1u] ^ result >> 1;
  return bits_stochastic(v, quad_noise(seed, noise_key.attempted, stream, place));
}
#endif

vec4 times_scale(vec4 v, uint result) {
  uint scale = scale_places[result];
  return scale == 0u ? v : within_range(v, scales[scale / 4u][scale % 4u]);
}

// Infinities as the largest number of their sign.
uvec4 saturated(uvec4 bits) {
  return mix(bits, (bits & 0x8000u) | LARGEST_BITS, equal(bits & 0x7fffu, uvec4(LARGEST_BITS + 1u)));
}

// The bits that are stored for the four numbers of quad `place` of the dispatch's narrow result number `result`.
uvec4 stored_bits(vec4 v, uint place, uint result) {
  if (SCALED) v = times_scale(v, result);
  uvec4 bits = rounded_bits(v, place, result);
  return SATURATE ? saturated(bits) : bits;
}

#endif
