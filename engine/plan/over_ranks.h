#pragma once

#include <cstdint>
#include <functional>

#include "plan/dispatch.h"

namespace halfstep::plan {

/// What becomes of numbers that every rank has, in the midst of a step.
enum class OverRanks : std::uint8_t {
  means,    ///< their means over ranks
  moments,  ///< of moments {1, 2, channels}, mean and sum of squared differences: those of all ranks' rows together
};

/// How operators are lowered where other ranks compute the same: with statistics over all of them.
struct RankStatistics {
  std::int64_t ranks = 1;
  /// Appends what exchanges a tensor of f32, of `rows` on each rank, and returns what then has the result. The host
  /// waits. Null where ranks are alone.
  std::function<TensorId(TensorId own, OverRanks kind, std::int64_t rows)> exchange{};
};

}  // namespace halfstep::plan
