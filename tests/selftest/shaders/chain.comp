#version 450
// A dispatch of a chain: each element is computed of another's, which a dispatch before wrote.
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer Source {
  uint source[];
};
layout(set = 0, binding = 1) writeonly buffer Result {
  uint result[];
};
layout(push_constant) uniform Push {
  uint count;
  uint shift;
};

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (at < count) result[at] = source[(at + shift) % count] * 3u + shift;
}
