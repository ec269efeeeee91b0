#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/memory_plan.h"
#include "plan/program.h"

namespace halfstep::plan {

/// A program with memory layout and barriers: everything needed to record it.
struct Plan {
  Program program;
  Arena arena;
  std::vector<bool> barrier_before;  ///< for each dispatch

  std::uint64_t barriers() const;
  /// One line for each dispatch and each tensor, for display.
  std::string text() const;
};

Plan make_plan(Program program, const ArenaOptions& options);

}  // namespace halfstep::plan
