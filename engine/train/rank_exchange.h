#pragma once

#include <halfstep/error.h>
#include <halfstep/trainer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/program.h"
#include "train/balancer.h"
#include "train/shard_exchange.h"
#include "train/workspace.h"

namespace halfstep::train {

/// Throws Error where options of Ranks cannot be, or others do not go with several ranks.
void check_ranks(const TrainerOptions& options);
/// Throws Error where ranks cannot share out what the optimizers of a graph keep.
void check_shared_state(const step::StepGraph& graph, const TrainerOptions& options);

/// A trainer's part in a training of several ranks. Every function but take_part() and end_all() is called by all of
/// them.
///
/// An update is computed by each rank, from the same sums. On devices of one kind it gives the same bits. Where ranks
/// have different devices, square roots and quotients may be rounded differently: weights are then compared after each
/// of the first steps too, and from the first difference on, every rank takes those of rank 0 after every step.
class RankExchange {
 public:
  /// All must outlive it.
  RankExchange(const run::Workspace& workspace, const TrainerOptions& options, Balancer& balancer);

  /// Has the steps of a training program exchange gradients, states and what they report.
  void take_part(run::Program& program);
  /// Throws Error that names the first difference between the ranks' versions, models, options or data.
  void check_agreement(const Graph& graph, const step::StepGraph& lowered);
  /// Goes on after so many steps of a training with a seed, which key the noise of stochastic rounding.
  void start(std::uint64_t seed, std::uint64_t steps);
  /// Counts a step; compares weights where that is due, or makes them those of rank 0. Waits for the step where it
  /// does.
  void count_step();
  /// Ends all ranks where an Error leaves this one without a device, which the others would wait for. Else returns.
  void end_all(const Error& error);
  /// Throws Error, on every rank, that names a rank and a tensor that differs from rank 0's.
  void compare_weights() const;

 private:
  void wait_for(std::uint64_t ticket);
  void exchange(const run::Slot& slot, const step::ExchangeBucket& bucket);
  void exchange(const run::Slot& slot, const step::ExchangedStatistics& statistics);
  void end_exchange(const run::Program& program, const run::Slot& slot);
  void begin_reports(const run::Program& program, const run::Slot& slot);
  void end_reports(const run::Program& program, const run::Slot& slot);
  std::uint32_t first_difference(std::span<const std::uint64_t> mine, std::vector<float>& found) const;
  std::uint32_t first_other_weights(std::vector<float>& found) const;
  void compare_devices();
  void take_weights_of_first();
  bool comparison_is_due() const;

  const run::Workspace& workspace_;
  const TrainerOptions& options_;
  Exchange& exchange_;
  Balancer& balancer_;
  std::optional<ShardExchange> shard_{};  ///< where ranks share out the optimizers' states
  std::uint64_t seed_;
  std::uint64_t steps_ = 0;  ///< of the training
  std::uint64_t first_ = 0;  ///< those before start()
  bool mixed_ = false;       ///< whether ranks have different devices
  bool sums_under_way_ = false;
  bool follows_ = false;  ///< whether weights are made those of rank 0
  std::vector<float> reports_;
};

}  // namespace halfstep::train
