// The activation between the layers of a network, or its gradient: a straight line of steps in specialization constants,
// as in common/expression.glsl, which must be included before. ops/mlp/mlp_pack.cpp writes them.
#ifndef HALFSTEP_MLP_ACTIVATION
#define HALFSTEP_MLP_ACTIVATION

layout(constant_id = 1) const uint ACTIVATION_VALUE = 0u;  // the register that has the result

// A step: its operation, and the registers of a and b, eight bits each.
#define DECLARE_ACTIVATION_STEP(i)                                     \
  layout(constant_id = 2 + 2 * i) const uint ACTIVATION_STEP_##i = 0u; \
  layout(constant_id = 3 + 2 * i) const uint ACTIVATION_CONSTANT_##i = 0u;
DECLARE_ACTIVATION_STEP(0)
DECLARE_ACTIVATION_STEP(1)
DECLARE_ACTIVATION_STEP(2)
DECLARE_ACTIVATION_STEP(3)
DECLARE_ACTIVATION_STEP(4)
DECLARE_ACTIVATION_STEP(5)
DECLARE_ACTIVATION_STEP(6)
DECLARE_ACTIVATION_STEP(7)

#define TAKE_ACTIVATION_STEP(i)                                                                               \
  if (ACTIVATION_STEP_##i != 0u) {                                                                            \
    r[2 + i] = computed(ACTIVATION_STEP_##i & 255u, r[ACTIVATION_STEP_##i >> 8 & 255u],                       \
                        r[ACTIVATION_STEP_##i >> 16], uintBitsToFloat(ACTIVATION_CONSTANT_##i));              \
  }

// Of the argument; of dy and what the gradient also depends on, the result or the argument.
vec4 activated(vec4 a, vec4 b) {
  vec4 r[10];
  r[0] = a;
  r[1] = b;
  TAKE_ACTIVATION_STEP(0)
  TAKE_ACTIVATION_STEP(1)
  TAKE_ACTIVATION_STEP(2)
  TAKE_ACTIVATION_STEP(3)
  TAKE_ACTIVATION_STEP(4)
  TAKE_ACTIVATION_STEP(5)
  TAKE_ACTIVATION_STEP(6)
  TAKE_ACTIVATION_STEP(7)
  return r[ACTIVATION_VALUE];
}
vec4 activated(vec4 v) { return activated(v, v); }

#endif
