#version 450
// Reads and writes buffers by their addresses.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(local_size_x_id = 0) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads {
  uvec4 quads[];
};
layout(push_constant) uniform Push {
  Quads source;
  Quads result;
  uint count;
};

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (at < count) result.quads[at] = source.quads[count - 1u - at].wzyx;
}
