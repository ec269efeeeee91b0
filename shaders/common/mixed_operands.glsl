// For kernels that take f32 in place of STORAGE, for each of their own operands (plan::Dispatch::mixes): they declare them
// by READ_STORED and WRITE_STORED, and read and write them by the functions that these define.
#ifndef HALFSTEP_MIXED_OPERANDS
#define HALFSTEP_MIXED_OPERANDS

#include "common/precision.glsl"

// A bit for each binding whose operand is f32 though STORAGE is not.
layout(constant_id = 31) const uint WIDE_OPERANDS = 0u;
#define IS_WIDE(at) ((WIDE_OPERANDS >> at & 1u) != 0u)
#define READ_STORED(at, Name, name)                                                        \
  layout(std430, binding = at) readonly buffer Name { QUAD name[]; };                      \
  layout(std430, binding = at) readonly buffer Wide##Name { vec4 wide_##name[]; };         \
  vec4 name##_at(uint i) { return IS_WIDE(at) ? wide_##name[i] : from_quad(name[i]); }
// The narrow operand that is number `result` of those that are written.
#define WRITE_STORED(at, Name, name, result)                                               \
  layout(std430, binding = at) writeonly buffer Name { QUAD name[]; };                     \
  layout(std430, binding = at) writeonly buffer Wide##Name { vec4 wide_##name[]; };        \
  void set_##name(uint i, vec4 v) {                                                        \
    if (IS_WIDE(at)) {                                                                     \
      wide_##name[i] = v;                                                                  \
    } else {                                                                               \
      name[i] = to_quad_of(result, v, i);                                                  \
    }                                                                                      \
  }

#endif
