#version 450
// Operations across a subgroup, with where each invocation is: {subgroup, invocation, size, result}.
//! OPERATION = add min max mul_float inclusive exclusive shuffle shuffle_xor broadcast ballot vote elect
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : enable
#extension GL_KHR_shader_subgroup_shuffle : enable
#extension GL_KHR_shader_subgroup_ballot : enable
#extension GL_KHR_shader_subgroup_vote : enable
layout(local_size_x_id = 0) in;
layout(set = 0, binding = 0) readonly buffer Source {
  uint source[];
};
layout(set = 0, binding = 1) writeonly buffer Result {
  uvec4 result[];
};

void main() {
  const uint at = gl_GlobalInvocationID.x;
  const uint value = source[at];
#if defined(OPERATION_add)
  const uint got = subgroupAdd(value);
#elif defined(OPERATION_min)
  const uint got = subgroupMin(value);
#elif defined(OPERATION_max)
  const uint got = subgroupMax(value);
#elif defined(OPERATION_mul_float)
  const uint got = floatBitsToUint(subgroupAdd(float(value & 1023u)));
#elif defined(OPERATION_inclusive)
  const uint got = subgroupInclusiveAdd(value);
#elif defined(OPERATION_exclusive)
  const uint got = subgroupExclusiveAdd(value);
#elif defined(OPERATION_shuffle)
  const uint got = subgroupShuffle(value, gl_SubgroupSize - 1u - gl_SubgroupInvocationID);
#elif defined(OPERATION_shuffle_xor)
  const uint got = subgroupShuffleXor(value, 1u);
#elif defined(OPERATION_broadcast)
  const uint got = subgroupBroadcast(value, 2u);
#elif defined(OPERATION_ballot)
  const uint got = subgroupBallotBitCount(subgroupBallot((value & 1u) != 0u));
#elif defined(OPERATION_vote)
  const uint got = (subgroupAny((value & 7u) == 0u) ? 1u : 0u) | (subgroupAll((value & 3u) != 0u) ? 2u : 0u);
#elif defined(OPERATION_elect)
  const uint got = subgroupElect() ? 1u : 0u;
#endif
  result[at] = uvec4(gl_SubgroupID, gl_SubgroupInvocationID, gl_SubgroupSize, got);
}
