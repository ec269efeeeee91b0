#pragma once

#include <cstdint>
#include <vector>

#include "plan/program.h"
#include "plan/target.h"

namespace halfstep::plan {

/// The range from the first dispatch that accesses a tensor to the last, both included.
struct Lifetime {
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  bool used = false;

  bool overlaps(const Lifetime& other) const {
    return used && other.used && first <= other.last && other.first <= last;
  }
};

/// The lifetime of every tensor of a program.
std::vector<Lifetime> lifetimes(const Program& program);

struct ArenaOptions {
  std::uint64_t alignment = 256;
  std::uint64_t guard_bytes = 0;   ///< left unused before and after each tensor, so that tests can check them
  bool reuse = true;               ///< whether tensors with disjoint lifetimes share memory
  std::uint64_t part_bytes = 0;    ///< see Target::part_bytes
  std::uint64_t window_bytes = 0;  ///< of a larger tensor's windows, each of which lies in one part
};
/// For programs of a target.
ArenaOptions arena_options(const Target& target);

/// The layout of the arena.
struct Arena {
  std::uint64_t bytes = 0;           ///< the size of the arena: the peak
  std::uint64_t bytes_unshared = 0;  ///< the size if no memory were reused
};

/// Gives every arena tensor of `program` its offset, so that tensors that are alive at the same time never overlap.
Arena plan_arena(Program& program, const ArenaOptions& options);

/// For every dispatch, whether it needs a barrier before it: it accesses bytes that a dispatch since the last barrier
/// wrote, or writes bytes that one read.
std::vector<bool> plan_barriers(const Program& program);

}  // namespace halfstep::plan
