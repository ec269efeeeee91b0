#pragma once

#include <halfstep/trainer_options.h>

#include <cstdint>
#include <span>
#include <vector>

#include "run/program.h"
#include "train/workspace.h"

namespace halfstep::train {

/// What ranks exchange that share out the optimizers' states (Ranks::shard_state). Every function is called by all.
class ShardExchange {
 public:
  /// Both must outlive it. The store has a shard.
  ShardExchange(const run::Workspace& workspace, const TrainerOptions& options)
      : workspace_(workspace), options_(options), exchange_(*options.ranks.exchange) {}

  /// Begins to sum up the gradients of a bucket, `values`, whose first is element `first` of all parameters: each rank
  /// gets the sums of its parts. Seed and step key the noise.
  void begin_sum(std::span<float> values, std::uint64_t first, std::uint64_t seed, std::uint64_t step);
  /// What the host does after that in the middle of a step.
  std::vector<run::Slots::HostTurn> turns();

 private:
  void share_findings();
  void gather_words(std::uint64_t place);
  void gather_weights();

  const run::Workspace& workspace_;
  const TrainerOptions& options_;
  Exchange& exchange_;
};

}  // namespace halfstep::train
