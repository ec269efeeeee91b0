// Norms of f32 on drivers with Target::uniform_loads: a workgroup is a subgroup, whose LANES invocations have adjacent
// channels of a slice, and read a row of these as one vector.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require

layout(constant_id = 0) const int LANES = 8;  // the local size
#include "common/of_lane.glsl"
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer QuadAt { vec4 v; };
#define BEFORE_PUSH \
  QuadAt x;         \
  QuadAt dy;
#include "norm/channel_norm.glsl"

const uint SETS_OF_CHANNELS = QUADS / uint(LANE_QUADS);

// The workgroup's slice and its first channels. The last workgroups have none, but the addresses of the first one's,
// since they load from them: see common/of_lane.glsl.
bool lanes_slice(out Slice s) {
  uint unit = linear_group();
  bool is_there = unit / SETS_OF_CHANNELS * QUADS < invocations;
  unit = is_there ? unit : 0u;
  uint slice = unit / SETS_OF_CHANNELS;
  s = Slice(slice / slices, slice % slices, unit % SETS_OF_CHANNELS * uint(LANE_QUADS));
  return is_there;
}

// This invocation's element of an operand that is read by address, from a quad on.
float lane_of(QuadAt operand, uint quad) { return of_lane(LanesAt(operand + quad)); }

// Where this invocation's element is, from a quad on.
uint element_at(uint quad) { return quad * 4u + gl_SubgroupInvocationID; }
