#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! STORAGE = storages
#define FIRST_ARGUMENT 1
#include "common/expression.glsl"
#include "common/long_sum.glsl"

// Sums of an expression over some axes, times a factor. Each quad of one of `parts` partial results is computed by
// LANES invocations, from every (LANES * parts)-th term each, so that adjacent invocations read adjacent terms. Extents
// and strides count quads, outermost axis first; the host has merged contiguous axes.
// LAST_SUMMED: whether the last axis is summed. Then the elements of a quad of the result come from four rows.
layout(constant_id = 1) const bool LAST_SUMMED = false;
#define LANES_ARE_ADJACENT LAST_SUMMED
#include "common/columns.glsl"
layout(constant_id = 2) const int KEPT_AXES = 1;
layout(constant_id = 3) const int SUMMED_AXES = 1;

layout(push_constant) uniform Push {
  uint quads;  // of a partial result
  uint parts;
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

vec4 term_at(uint offset, uint i) { return expressed(offset + summed_offset(i), vec4(0.0)); }

// The sum of every `slices`-th term from the one at `slice` on.
vec4 sum_from(uint offset, uint slice, uint slices) {
  LongSum total = EMPTY_SUM;
  if (TERMS == 0u) {
    for (uint i = slice; i < summed; i += slices) add_term(total, term_at(offset, i));
  } else {
    // Past the last term, the last one is read again: a branch would keep reads apart.
    [[unroll]] for (uint t = 0u; t < TERMS; t++) {
      uint i = slice + t * slices;
      vec4 term = term_at(offset, min(i, summed - 1u));
      add_term(total, i < summed ? term : vec4(0.0));
    }
  }
  return value_of(total);
}

vec4 sum_rows(uint quad, uint slice, uint slices) {
  uint column = quad % quads_per_row * 4u;
  uint element = quad / quads_per_row * columns + column;
  vec4 total = vec4(0.0);
  for (int i = 0; i < 4; i++) {
    if (column + uint(i) < columns) total[i] = dot(sum_from(kept_offset(element + uint(i)), slice, slices), vec4(1.0));
  }
  return total;
}

void main() {
  uint blocks = (quads + TOGETHER - 1u) / TOGETHER;
  uint unit = work_unit();
  uint quad = (LAST_SUMMED ? unit / parts : unit % blocks) * TOGETHER + in_unit();
  uint part = LAST_SUMMED ? unit % parts : unit / blocks;
  uint slice = part * LANES + lane();
  vec4 total = vec4(0.0);
  bool is_there = quad < quads && part < parts;
  if (is_there) {
    uint slices = parts * LANES;
    total = LAST_SUMMED ? sum_rows(quad, slice, slices) : sum_from(kept_offset(quad), slice, slices);
  }
  total = sum_over_lanes(total) * factor;
  if (is_there && lane() == 0u) {
    uint at = part * quads + quad;
    if ((RESULT & WIDE) != 0u) {
      wide_y[at] = total;
    } else {
      y[at] = to_quad(total, at);
    }
  }
}
