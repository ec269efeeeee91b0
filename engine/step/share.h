#pragma once

#include <halfstep/trainer_options.h>

#include <cstdint>
#include <span>
#include <vector>

namespace halfstep::step {

/// Of a step's micro-batches, those that one rank computes.
struct Share {
  std::uint32_t count = 1;
  std::uint32_t before = 0;  ///< of the ranks before it
  std::uint32_t all = 1;     ///< of all ranks
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  bool alone = false;  ///< gradients, and what is reported, are of this rank's only

  bool has(std::size_t micro_batch) const { return micro_batch >= before && micro_batch < before + count; }
  /// Micro-batches that are reported, and which of them is this rank's first.
  std::uint32_t reported() const { return alone ? count : all; }
  std::uint32_t first_reported() const { return alone ? 0 : before; }
};

/// What this rank has where ranks have so many micro-batches each.
Share share_of(std::span<const std::uint32_t> counts, const Ranks& ranks);

/// Divides micro-batches over ranks, of which each takes so many seconds for one, so that the slowest is done as soon
/// as possible. Each gets one at least; there are no fewer than ranks.
std::vector<std::uint32_t> divided(std::uint32_t micro_batches, std::span<const double> seconds);

/// How the micro-batches of a training's first step are divided over its ranks.
std::vector<std::uint32_t> first_parts(const TrainerOptions& options);

}  // namespace halfstep::step
