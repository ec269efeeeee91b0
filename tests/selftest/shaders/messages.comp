#version 450
// Litmus tests across workgroups, by atomics with barriers between. Half of the workgroups write, each invocation a slot of
// its own; half read. Message passing: a reader that sees a slot's flag must see its data. Coherence: of two reads of one
// word by one invocation, the second is not older.
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) coherent buffer Data {
  uint data[];
};
layout(set = 0, binding = 1) coherent buffer Flags {
  uint flags[];
};
layout(set = 0, binding = 2) buffer Counts {
  uint counts[4];  ///< violations of message passing, of coherence; messages and values that were seen
};
layout(push_constant) uniform Push {
  uint rounds;
};

void main() {
  const bool writes = (gl_WorkGroupID.x & 1u) == 0u;
  const uint at = (gl_WorkGroupID.x >> 1u) * gl_WorkGroupSize.x + gl_LocalInvocationIndex;
  for (uint round = 1u; round <= rounds; ++round) {
    if (writes) {
      atomicExchange(data[at], round);
      memoryBarrierBuffer();
      atomicExchange(flags[at], round);
    } else {
      const uint seen = atomicAdd(flags[at], 0u);
      memoryBarrierBuffer();
      const uint got = atomicAdd(data[at], 0u);
      memoryBarrierBuffer();
      const uint again = atomicAdd(data[at], 0u);
      if (seen != 0u) atomicAdd(counts[2], 1u);
      if (got != 0u) atomicAdd(counts[3], 1u);
      if (got < seen) atomicAdd(counts[0], 1u);
      if (again < got) atomicAdd(counts[1], 1u);
    }
  }
}
