// Max pooling of f32 on drivers with Target::uniform_loads: a workgroup is a subgroup, whose LANES invocations have
// adjacent channels of windows of a line, and read and write those of a pixel as one vector.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
#extension GL_EXT_shader_integer_mix : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_quad : require

layout(constant_id = 0) const int LANES = 8;  // the local size
layout(constant_id = 16) const int WINDOWS = 1;  // of a workgroup, in a line; a divisor of GRID_WIDTH
#define WHOLE_PARTS true
#include "common/across_lanes.glsl"
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer QuadAt { vec4 v; };
#define RESULT_PITCH RESULT_ROW_QUADS
#include "pool/pool.glsl"

const uint SETS_OF_CHANNELS = CHANNEL_QUADS / uint(LANE_QUADS);

// The workgroup's first window and first channels.
Place place_of_group() {
  uint unit = linear_group();
  uint first = unit / SETS_OF_CHANNELS;
  uint in_line = uint(GRID_WIDTH / WINDOWS);
  uint line = first / in_line;
  return Place(int(line / uint(GRID_HEIGHT)), ivec2(line % uint(GRID_HEIGHT), first % in_line * uint(WINDOWS)),
               unit % SETS_OF_CHANNELS * uint(LANE_QUADS));
}

// This invocation's element of a pixel.
float lane_of(QuadAt operand, Place at, ivec2 pixel, ivec2 size) {
  return of_lane(LanesAt(operand + quad_at(at, pixel, size)));
}

// That pixel of the result.
Parts part_of(Place at, ivec2 pixel, ivec2 size) {
  Parts parts;
  parts.at = ivec4(quad_at(at, pixel, size));
  parts.columns = ivec4(LANES);
  // Channels in whole quads are not told apart: see plan/expression.h.
  bool padded = RESULT_COLUMNS % 4u == 0u ? false : at.channel * 4u + uint(result_lane) >= RESULT_COLUMNS;
  parts.padded = bvec4(padded);
  return parts;
}
