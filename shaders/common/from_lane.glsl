// The value of `v` that an invocation of the subgroup of LANES has, the same one for all. Its lane is a constant once
// loops are unrolled, and then one branch is left.
#ifndef HALFSTEP_FROM_LANE
#define HALFSTEP_FROM_LANE

// 0, for compilers that know it and, where a shader defines it before, for those that do not: lavapipe of Mesa 22 makes
// two permutations for a lane that is a constant, and one for another.
#ifndef LANE_ZERO
#define LANE_ZERO 0
#endif

// lavapipe, where 8 lanes are one vector that is shuffled in half the time of a broadcast; 16 go one by one.
#ifdef BROADCASTS
#define SHUFFLED(v, lane)
#else
#define SHUFFLED(v, lane) \
  if (LANES == 8) return subgroupShuffle(v, lane + LANE_ZERO);
#endif

#define FROM_LANE(Type)                              \
  Type from_lane(Type v, int lane) {                 \
    SHUFFLED(v, lane)                                \
    if (lane == 0) return subgroupBroadcast(v, 0);   \
    if (lane == 1) return subgroupBroadcast(v, 1);   \
    if (lane == 2) return subgroupBroadcast(v, 2);   \
    if (lane == 3) return subgroupBroadcast(v, 3);   \
    if (lane == 4) return subgroupBroadcast(v, 4);   \
    if (lane == 5) return subgroupBroadcast(v, 5);   \
    if (lane == 6) return subgroupBroadcast(v, 6);   \
    if (lane == 7) return subgroupBroadcast(v, 7);   \
    if (lane == 8) return subgroupBroadcast(v, 8);   \
    if (lane == 9) return subgroupBroadcast(v, 9);   \
    if (lane == 10) return subgroupBroadcast(v, 10); \
    if (lane == 11) return subgroupBroadcast(v, 11); \
    if (lane == 12) return subgroupBroadcast(v, 12); \
    if (lane == 13) return subgroupBroadcast(v, 13); \
    if (lane == 14) return subgroupBroadcast(v, 14); \
    return subgroupBroadcast(v, 15);                 \
  }

FROM_LANE(float)
FROM_LANE(uint)

#endif
