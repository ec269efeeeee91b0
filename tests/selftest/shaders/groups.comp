#version 450
// Each workgroup marks its own element once.
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) buffer Result {
  uint result[];
};

void main() {
  const uvec3 n = gl_NumWorkGroups;
  const uvec3 g = gl_WorkGroupID;
  if (gl_LocalInvocationIndex == 0u) atomicAdd(result[(g.z * n.y + g.y) * n.x + g.x], g.x + 7u * g.y + 11u * g.z + 1u);
}
