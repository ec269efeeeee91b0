#version 440
#extension GL_GOOGLE_include_directive : require
// One workgroup per tensor: decides whether the tensor skips this update, the factor that undoes its scale, and the
// next scale.
#include "common/indexing.glsl"
#include "step/gradient_scales.glsl"
#include "step/step_state.glsl"

struct Tensor {
  uint first_block;
  uint blocks;
};
layout(push_constant) uniform Push {
  uint count;  // of tensors
};
layout(std430, binding = 0) buffer State { StepState state; };
layout(std430, binding = 1) readonly buffer Largest { uint largest[]; };
layout(std430, binding = 2) readonly buffer Tensors { Tensor tensors[]; };
layout(std430, binding = 3) buffer Scales { float scales[]; };  // tensor t has entry t + 1
layout(std430, binding = 4) writeonly buffer Blocks { Block blocks[]; };

shared uint most;
shared int exponent;  // of the scale, which only the first invocation reads and writes

const int HEADROOM = 4;            // bits between the largest magnitude and the end of f16's range
const int WANTED = 15 - HEADROOM;  // exponent of the largest magnitude
const int BACKOFF = -8;            // if it is unknown how much too large it was
const int LIMIT = 24;              // bound on the exponents of scales, in both directions

int exponent_of(uint bits) { return int(bits >> 23) - 127; }
float power_of_two(int exponent) { return uintBitsToFloat(uint(exponent + 127) << 23); }

// A scale grows at most by the headroom, so that a step with small or zero gradients does not cause an overflow in the
// next.
int next_exponent(bool skip_tensor) {
  int rise = skip_tensor ? BACKOFF : min(WANTED - exponent_of(most), HEADROOM);
  return clamp(exponent + rise, -LIMIT, LIMIT);
}

void main() {
  if (linear_group() >= count) return;
  Tensor tensor = tensors[linear_group()];
  uint place = linear_group() + 1u;
  uint me = gl_LocalInvocationID.x;
  if (me == 0u) {
    most = 0u;
    exponent = exponent_of(floatBitsToUint(scales[place]));
  }
  barrier();
  uint mine = 0u;
  for (uint i = me; i < tensor.blocks; i += gl_WorkGroupSize.x) mine = max(mine, largest[tensor.first_block + i]);
  atomicMax(most, mine);
  barrier();
  bool skipped = state.overflow != 0u;
  bool skip_tensor = !skipped && most >= floatBitsToUint(65504.0);
  for (uint i = me; i < tensor.blocks; i += gl_WorkGroupSize.x) {
    blocks[tensor.first_block + i] = Block(power_of_two(-exponent), uint(skip_tensor));
  }
  if (me != 0u || skipped) return;
  scales[place] = power_of_two(next_exponent(skip_tensor));
  if (skip_tensor) atomicAdd(state.tensor_updates_skipped, 1u);
}
