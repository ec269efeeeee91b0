#version 450
// Every invocation changes the same words. {sum, least, largest, or, xor, compare-and-swap, shared sum, tickets}.
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) buffer Words {
  uint words[8];
};
layout(set = 0, binding = 1) buffer Tickets {
  uint tickets[];  ///< how often each number was drawn
};
shared uint total;

void main() {
  const uint at = gl_GlobalInvocationID.x;
  if (gl_LocalInvocationIndex == 0u) total = 0u;
  barrier();
  atomicAdd(total, at);
  atomicAdd(words[0], at);
  atomicMin(words[1], at ^ 0x5au);
  atomicMax(words[2], at ^ 0x5au);
  atomicOr(words[3], 1u << (at & 31u));
  atomicXor(words[4], at * 2654435761u);
  for (uint tries = 0u; tries < 4096u; ++tries) {
    const uint seen = words[5];
    if (atomicCompSwap(words[5], seen, seen + 3u) == seen) {
      atomicAdd(words[7], 1u);
      break;
    }
  }
  atomicAdd(tickets[atomicAdd(words[6], 1u)], 1u);
  barrier();
  if (gl_LocalInvocationIndex == 0u) atomicAdd(tickets[gl_NumWorkGroups.x * gl_WorkGroupSize.x], total);
}
