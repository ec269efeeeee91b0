#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
// Merges the rows that statistics.comp made of a tensor into the report, and, where that is asked for, stops the
// step for infinities and NaNs.
#include "common/indexing.glsl"
#include "common/math.glsl"
#include "step/statistics.glsl"
#include "step/step_state.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool STOP_ON_INFINITY = false;
layout(constant_id = 2) const bool STOP_ON_NAN = false;
layout(push_constant) uniform Push {
  uint count;
  uint scale;  // index of the tensor's scale in the table; 0 if it has none
};
layout(std430, binding = 0) readonly buffer Rows { int rows[]; };
layout(std430, binding = 1) writeonly buffer Merged { int merged[]; };
layout(std430, binding = 2) buffer State { StepState state; };
layout(std430, binding = 3) readonly buffer Scales { float scales[]; };

int both(int word, int a, int b) {
  if (word == SMALLEST) return min(a, b);
  if (word == LARGEST) return max(a, b);
  if (word >= SUM && word <= SQUARES_OF_LARGE) return floatBitsToInt(intBitsToFloat(a) + intBitsToFloat(b));
  return a + b;
}

void main() {
  if (gl_LocalInvocationID.x == 0u) merged[SCALE] = floatBitsToInt(scale == 0u ? 1.0 : scales[scale]);
  for (int word = int(gl_LocalInvocationID.x); word < ROW_WORDS; word += int(gl_WorkGroupSize.x)) {
    int total = empty_word(word);
    for (uint i = 0u; i < count; i++) total = both(word, total, rows[i * uint(ROW_WORDS) + uint(word)]);
    if (STOP_ON_INFINITY && word == INFINITIES && total > 0) atomicOr(state.overflow, STOPPED);
    if (STOP_ON_NAN && word == NANS && total > 0) atomicOr(state.overflow, STOPPED);
    merged[word] = word <= LARGEST ? floatBitsToInt(number_at(ivec4(total)).x) : total;
  }
}
