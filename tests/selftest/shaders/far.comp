#version 450
// Words far from each other in a buffer, by its address: the place by 64-bit arithmetic, or as an index from the start.
//! PLACE = address index
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require
layout(local_size_x_id = 0) in;
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words {
  uint words[];
};
layout(set = 0, binding = 0) buffer Seen {
  uint seen[];
};
layout(push_constant) uniform Push {
  uint64_t start;
  uint64_t apart;  ///< bytes from one word to the next
  uint count;
  uint written;    ///< what is stored with each word's number; 0: they are read
};

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (at >= count) return;
#if defined(PLACE_address)
  Words place = Words(start + uint64_t(at) * apart);
  const uint index = 0u;
#else
  Words place = Words(start);
  const uint index = at * uint(apart >> 2);
#endif
  if (written != 0u) {
    place.words[index] = at * 2654435761u + written;
  } else {
    seen[at] = place.words[index];
  }
}
