#version 440
#extension GL_EXT_shader_integer_mix : require
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
//! STORAGE = storages
#define RESULT_BINDING 2
#define FIRST_ARGUMENT 3
#include "common/expression.glsl"

// Rotates pairs of elements of each row by the angles in the table: elements 2 i and 2 i + 1, or with HALVES elements i
// and i + pairs. Backwards for the gradient.
layout(constant_id = 1) const bool HALVES = true;
layout(constant_id = 2) const bool BACKWARDS = false;
layout(constant_id = 3) const uint PAIRS = 1u;
layout(constant_id = 4) const uint POSITIONS = 1u;
layout(constant_id = 5) const uint INNER = 1u;  // rows from one position to the next
const uint ROW_QUADS = (2u * PAIRS + 3u) / 4u;
const uint TABLE_QUADS = (PAIRS + 3u) / 4u;

layout(push_constant) uniform Push { uint quads; };
layout(std430, binding = 0) readonly buffer X { QUAD x[]; };
layout(std430, binding = 1) readonly buffer Table { vec4 table[]; };  // {positions, 2, pairs}: cosine and sine

float element_of(uint row, uint column) { return from_quad(x[row * ROW_QUADS + column / 4u])[column % 4u]; }

// {cosine, sine} of a pair.
vec2 angle_of(uint position, uint pair) {
  uint at = position * 2u * TABLE_QUADS + pair / 4u;
  return vec2(table[at][pair % 4u], (BACKWARDS ? -1.0 : 1.0) * table[at + TABLE_QUADS][pair % 4u]);
}

vec4 with_neighbours(uint row, uint position, uint quad) {
  vec4 v = from_quad(x[row * ROW_QUADS + quad]);
  vec2 first = angle_of(position, 2u * quad);
  vec2 second = angle_of(position, min(2u * quad + 1u, PAIRS - 1u));
  return vec4(v.x * first.x - v.y * first.y, v.x * first.y + v.y * first.x,  //
              v.z * second.x - v.w * second.y, v.z * second.y + v.w * second.x);
}

vec4 with_other_half(uint row, uint position, uint quad) {
  vec4 v = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < 4u; i++) {
    uint column = quad * 4u + i;
    if (column >= 2u * PAIRS) continue;
    bool low = column < PAIRS;
    vec2 angle = angle_of(position, low ? column : column - PAIRS);
    float own = element_of(row, column);
    float other = element_of(row, low ? column + PAIRS : column - PAIRS);
    v[i] = own * angle.x + (low ? -other : other) * angle.y;
  }
  return v;
}

// The same where both halves are whole quads.
vec4 with_other_quad(uint row, uint position, uint quad) {
  bool low = quad < TABLE_QUADS;
  uint at = position * 2u * TABLE_QUADS + (low ? quad : quad - TABLE_QUADS);
  vec4 own = from_quad(x[row * ROW_QUADS + quad]);
  vec4 other = from_quad(x[row * ROW_QUADS + (low ? quad + TABLE_QUADS : quad - TABLE_QUADS)]);
  return own * table[at] + (low == BACKWARDS ? other : -other) * table[at + TABLE_QUADS];
}

void main() {
  uint i = linear_invocation();
  if (i >= quads) return;
  uint row = i / ROW_QUADS;
  uint quad = i % ROW_QUADS;
  uint position = row / INNER % POSITIONS;
  if (!HALVES) {
    store(i, with_neighbours(row, position, quad));
  } else if (PAIRS % 4u != 0u) {
    store(i, with_other_half(row, position, quad));
  } else {
    store(i, with_other_quad(row, position, quad));
  }
}
