#version 450
// Loops over a range that the host or the workgroup decides on, with another loop and loads inside. The range may be empty:
// for all workgroups, for some, or for some invocations.
//! EMPTY = all groups invocations
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer Source {
  uint source[];
};
layout(set = 0, binding = 1) writeonly buffer Result {
  uint result[];
};
layout(push_constant) uniform Push {
  uint first;
  uint end;
  uint inner;
};
#if defined(EMPTY_groups)
#define WHO gl_WorkGroupID.x
#elif defined(EMPTY_invocations)
#define WHO gl_GlobalInvocationID.x
#else
#define WHO 0u
#endif

void main() {
  const uint me = gl_GlobalInvocationID.x;
  const uint begin = first + WHO % 3u * 2u;
  uint sum = me;
  for (uint i = begin; i < end; i += 2u) {
    uint part[4] = uint[4](0u, 0u, 0u, 0u);
    for (uint j = 0u; j < inner; ++j) part[j & 3u] += source[(i + j) & 255u] ^ source[(me * i + j) & 255u];
    sum = sum * 3u + part[0] + 5u * part[1] + 7u * part[2] + 11u * part[3];
  }
  result[me] = sum;
}
