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
#include "train/rank_agreement.h"
#include "train/shard_exchange.h"
#include "train/workspace.h"

namespace halfstep::train {

/// A trainer's part in a training of several ranks. Every function but take_part() and end_all() is called by all of
/// them.
///
/// An update is computed by each rank, from the same sums. On devices of one kind it gives the same bits. Where ranks
/// have different devices, square roots and quotients may be rounded differently: weights are then compared after each
/// of the first steps too, and from the first difference on, every rank takes those of rank 0 after every step; the
/// scales of gradients it takes from the beginning.
class RankExchange {
 public:
  /// All must outlive it.
  RankExchange(const run::Workspace& workspace, const TrainerOptions& options, Balancer& balancer);

  /// Has the steps of a training program exchange gradients, states and what they report.
  void take_part(run::Program& program);
  /// Finds out whether ranks have different devices or drivers, and tells options.log.
  void compare_devices();
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
  void check_counts(const run::Program& program, const run::Slot& slot) const;
  std::optional<Difference> first_other_weights() const;
  void take_weights_of_first();
  std::vector<float> of_first(std::vector<float> values) const;
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
