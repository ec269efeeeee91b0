#version 450
// Invocations of a workgroup hand numbers around, in shared memory or through a buffer, with a barrier after each round.
//! PLACE = shared buffer
layout(local_size_x_id = 0) in;
layout(constant_id = 0) const uint SIZE = 64;
layout(set = 0, binding = 0) coherent buffer Words {
  uint words[];
};
layout(push_constant) uniform Push {
  uint rounds;
};
#if defined(PLACE_shared)
shared uint values[SIZE];
#define PLACE_OF(i) values[i]
#define WAIT barrier()
#else
#define PLACE_OF(i) words[gl_WorkGroupID.x * SIZE + (i)]
#define WAIT memoryBarrierBuffer(); barrier()
#endif

void main() {
  const uint me = gl_LocalInvocationIndex;
  const uint at = gl_WorkGroupID.x * SIZE + me;
  PLACE_OF(me) = words[at];
  for (uint i = 0u; i < rounds; ++i) {
    WAIT;
    const uint next = PLACE_OF((me * 5u + i + 1u) % SIZE);
    WAIT;
    PLACE_OF(me) = next * 3u + i;
  }
  WAIT;
  words[at] = PLACE_OF(me);
}
