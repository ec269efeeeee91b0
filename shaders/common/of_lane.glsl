// Loads of LANES contiguous numbers at once, an element for each invocation of a subgroup, on drivers with
// Target::uniform_loads: from an address that is the same for all of them. Such a load is executed even if an
// invocation is inactive, so the address must be valid.
#ifndef HALFSTEP_OF_LANE
#define HALFSTEP_OF_LANE

const int LANE_QUADS = LANES / 4;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer LanesAt { vec4 v[4]; };

// This invocation's element of those from a quad on: compiles to one vector load.
float of_lane(LanesAt at) {
  vec4 quads_at[LANE_QUADS];
  [[unroll]] for (int q = 0; q < LANE_QUADS; q++) quads_at[q] = at.v[q];
  float v = 0.0;
  [[unroll]] for (int l = 0; l < LANES; l++) v = int(gl_SubgroupInvocationID) == l ? quads_at[l / 4][l % 4] : v;
  return v;
}

#endif
