#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! STORAGE = storages
#include "common/math.glsl"
#include "loss/row_loss.glsl"

struct Best {
  float logit;
  uint index;
};

// The larger logit; of equal ones, the first. A NaN, if one is.
Best better(Best a, Best b) {
  bool second = b.logit > a.logit || (b.logit == a.logit && b.index < a.index);
  second = is_nan(b.logit) || (second && !is_nan(a.logit));
  return Best(second ? b.logit : a.logit, second ? b.index : a.index);
}

Best best_over_lanes(Best best) {
  uint i = gl_LocalInvocationID.x;
  if (LANES > 1u) exchanged[i] = vec2(best.logit, best.index);
  for (uint step = LANES / 2u; step > 0u; step /= 2u) {
    barrier();
    vec2 other = exchanged[i ^ step];
    best = better(best, Best(other.x, uint(other.y)));
    barrier();
    exchanged[i] = vec2(best.logit, best.index);
  }
  return best;
}

// Whether the largest logit is the label's, and no logit is NaN.
vec3 row_value(uint row, uint label) {
  Best best = Best(minus_infinity(), lane() * 4u);
  for (uint quad = lane(); quad < quads_per_row; quad += LANES) {
    vec4 v = logits_of(row, quad);
    [[unroll]] for (uint i = 0u; i < 4u; i++) best = better(best, Best(v[i], quad * 4u + i));
  }
  best = best_over_lanes(best);
  return vec3(best.index == label && !is_nan(best.logit) ? 1.0 : 0.0, 0.0, 0.0);
}
