#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! STORAGE = storages
#include "common/columns.glsl"
#include "common/long_sum.glsl"
#include "common/mixed_operands.glsl"

// Adds up parts of the sums of channel_norm_sums.comp, planes of QUADS: those of dy, which are the gradient of the bias,
// and those of dy times the normalised x, which are the weight's.
layout(constant_id = 1) const uint QUADS = 1u;
layout(push_constant) uniform Push {
  uint parts;
};
layout(std430, binding = 0) readonly buffer Parts { vec4 of_parts[]; };
layout(std430, binding = 1) writeonly buffer Sums { vec4 sums[]; };
WRITE_STORED(2, WeightGradient, weight_gradient, 0)
WRITE_STORED(3, BiasGradient, bias_gradient, 1)

// The sum of every LANES-th part.
vec4 sum_of_lane(uint quad) {
  LongSum total = EMPTY_SUM;
  if (TERMS == 0u) {
    for (uint part = lane(); part < parts; part += LANES) add_term(total, of_parts[part * 2u * QUADS + quad]);
  } else {
    // Past the last part, that is read again: a branch would keep reads apart.
    [[unroll]] for (uint t = 0u; t < TERMS; t++) {
      uint part = lane() + t * LANES;
      vec4 term = of_parts[min(part, parts - 1u) * 2u * QUADS + quad];
      add_term(total, part < parts ? term : vec4(0.0));
    }
  }
  return value_of(total);
}

void main() {
  uint quad = work_unit() * TOGETHER + in_unit();
  bool is_there = quad < 2u * QUADS;
  vec4 total = vec4(0.0);
  if (is_there) total = sum_of_lane(quad);
  total = sum_over_lanes(total);
  if (!is_there || lane() != 0u) return;
  sums[quad] = total;
  if (quad < QUADS) {
    set_bias_gradient(quad, total);
  } else {
    set_weight_gradient(quad - QUADS, total);
  }
}
