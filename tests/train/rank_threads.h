#pragma once

#include <halfstep/halfstep.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

/// Ranks of a training as threads of this process.
namespace halfstep::testing {

/// Runs a function for each rank, in a thread of its own, and returns when all have ended.
void on_ranks(int count, const std::function<void(int rank, const Ranks& ranks)>& body);

/// What `body` returns for each rank.
template <typename Result>
std::vector<Result> results_of_ranks(int count, const std::function<Result(int rank, const Ranks& ranks)>& body) {
  std::vector<Result> results(static_cast<std::size_t>(count));
  on_ranks(count, [&](int rank, const Ranks& ranks) { results[static_cast<std::size_t>(rank)] = body(rank, ranks); });
  return results;
}

}  // namespace halfstep::testing
