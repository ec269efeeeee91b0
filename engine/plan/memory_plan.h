#pragma once

#include <cstdint>
#include <vector>

#include "plan/program.h"
#include "plan/target.h"

namespace halfstep::plan {

/// From the dispatch that first touches a tensor to the last that does, both included.
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
  std::uint64_t guard_bytes = 0;  ///< left unused before and after each tensor, for tests to check
  bool reuse = true;              ///< whether tensors whose lifetimes do not meet share memory
};

/// Where each tensor lies in the arena.
struct Arena {
  std::uint64_t bytes = 0;           ///< what the arena takes: the peak
  std::uint64_t bytes_unshared = 0;  ///< what it would take if no memory were used twice
};

/// Gives every arena tensor of `program` its offset, so that tensors alive together never overlap.
Arena plan_arena(Program& program, const ArenaOptions& options);

/// For every dispatch, whether a barrier must come before it: it touches bytes that a dispatch since the last barrier
/// wrote, or writes bytes that one read.
std::vector<bool> plan_barriers(const Program& program);

}  // namespace halfstep::plan
