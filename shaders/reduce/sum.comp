#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! STORAGE = storages
#define FIRST_ARGUMENT 1
#include "common/expression.glsl"
#include "common/long_sum.glsl"

// Sums of an expression over some axes, times a factor. Each invocation computes one quad of one of `slices` partial
// results, from every slices-th term, so that adjacent invocations read adjacent terms. Extents and strides count
// quads, outermost axis first; the host has merged contiguous axes.
// LAST_SUMMED: whether the last axis is summed. Then the elements of a quad of the result come from four rows.
layout(constant_id = 1) const bool LAST_SUMMED = false;
layout(constant_id = 2) const int KEPT_AXES = 1;
layout(constant_id = 3) const int SUMMED_AXES = 1;

layout(push_constant) uniform Push {
  uint quads;  // of a partial result
  uint slices;
  uint summed;  // quads summed for one quad of the result
  uint quads_per_row;
  uint columns;
  float factor;
  uint kept_extents[4];
  uint kept_strides[4];
  uint summed_extents[4];
  uint summed_strides[4];
};
layout(std430, binding = 0) writeonly buffer Y { QUAD y[]; };
layout(std430, binding = 0) writeonly buffer WideY { vec4 wide_y[]; };

uint kept_offset(uint i) {
  uint offset = 0u;
  [[unroll]] for (int axis = KEPT_AXES - 1; axis > 0; axis--) {
    offset += i % kept_extents[axis] * kept_strides[axis];
    i /= kept_extents[axis];
  }
  return offset + i * kept_strides[0];
}

uint summed_offset(uint i) {
  uint offset = 0u;
  [[unroll]] for (int axis = SUMMED_AXES - 1; axis > 0; axis--) {
    offset += i % summed_extents[axis] * summed_strides[axis];
    i /= summed_extents[axis];
  }
  return offset + i * summed_strides[0];
}

vec4 sum_from(uint offset, uint slice) {
  LongSum total = EMPTY_SUM;
  for (uint i = slice; i < summed; i += slices) add_term(total, expressed(offset + summed_offset(i), vec4(0.0)));
  return value_of(total);
}

vec4 sum_rows(uint quad, uint slice) {
  uint column = quad % quads_per_row * 4u;
  uint element = quad / quads_per_row * columns + column;
  vec4 total = vec4(0.0);
  for (int i = 0; i < 4; i++) {
    if (column + uint(i) < columns) total[i] = dot(sum_from(kept_offset(element + uint(i)), slice), vec4(1.0));
  }
  return total;
}

void main() {
  uint i = linear_invocation();
  if (i >= quads * slices) return;
  uint quad = LAST_SUMMED ? i / slices : i % quads;
  uint slice = LAST_SUMMED ? i % slices : i / quads;
  vec4 total = LAST_SUMMED ? sum_rows(quad, slice) : sum_from(kept_offset(quad), slice);
  uint at = slice * quads + quad;
  if ((RESULT & WIDE) != 0u) {
    wide_y[at] = total * factor;
  } else {
    y[at] = to_quad(total * factor, at);
  }
}
