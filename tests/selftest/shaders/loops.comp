#version 450
// Loops of many rounds, whose number is known to the host only.
//! LOOP = single nested sequence do_while
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) writeonly buffer Result {
  uint result[];
};
layout(push_constant) uniform Push {
  uint outer;
  uint inner;
};

void main() {
  uint sum = gl_GlobalInvocationID.x;
#if defined(LOOP_single)
  for (uint i = 0u; i < outer * inner; ++i) sum = sum * 1664525u + 1013904223u;
#elif defined(LOOP_nested)
  for (uint i = 0u; i < outer; ++i) {
    for (uint j = 0u; j < inner; ++j) sum = sum * 1664525u + 1013904223u;
  }
#elif defined(LOOP_sequence)
  for (uint i = 0u; i < outer * inner / 2u; ++i) sum = sum * 1664525u + 1013904223u;
  for (uint i = outer * inner / 2u; i < outer * inner; ++i) sum = sum * 1664525u + 1013904223u;
#else
  uint i = 0u;
  do {
    sum = sum * 1664525u + 1013904223u;
  } while (++i < outer * inner);
#endif
  result[gl_GlobalInvocationID.x] = sum;
}
