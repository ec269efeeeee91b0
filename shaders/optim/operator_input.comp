#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
//! STORAGE = storages
// An input of a rule that is written in operators, in f32: a parameter's gradient (unscaled and clipped), its weight or
// one of its states.
#include "optim/update.glsl"

const uint GRADIENT = 0u;
const uint WEIGHT = 1u;
const uint FIRST_STATE = 2u;
layout(constant_id = 7) const uint INPUT = GRADIENT;
layout(constant_id = 8) const uint STATES = 1u;
layout(std430, binding = 6) writeonly buffer Result { vec4 result[]; };
layout(push_constant) uniform Push {
  uint first_quad;
  uint quads;
  uint first_moment;
};

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  if (INPUT == GRADIENT) result[i] = unscaled_gradient(i, first_quad + i);
  if (INPUT == WEIGHT) result[i] = load_weight(i);
  if (INPUT >= FIRST_STATE) result[i] = load_moment(STATES * i + INPUT - FIRST_STATE);
}
