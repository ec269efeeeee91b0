#pragma once

#include <halfstep/trainer.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "run/program.h"
#include "train/workspace.h"

namespace halfstep::train {

/// Throws Error where options of Ranks cannot be, or others do not go with several ranks.
void check_ranks(const TrainerOptions& options);

/// A trainer's part in a training of several ranks. Every function but take_part() is called by all of them.
class RankExchange {
 public:
  /// Both must outlive it.
  RankExchange(const run::Workspace& workspace, const TrainerOptions& options);

  /// Has the steps of a training program exchange gradients, states and what they report.
  void take_part(run::Program& program);
  /// Throws Error that names the first difference between the ranks' versions, models, options or data.
  void check_agreement(const Graph& graph, const step::StepGraph& lowered) const;
  /// Counts a step; compares weights where that is due.
  void count_step();
  /// Throws Error, on every rank, that names a rank and a tensor that differs from rank 0's.
  void compare_weights() const;

 private:
  void exchange(const run::Program& program, const run::Slot& slot, std::span<const std::uint64_t> tickets);
  void begin_reports(const run::Program& program, const run::Slot& slot);
  void end_reports(const run::Program& program, const run::Slot& slot);
  std::uint32_t first_difference(std::span<const std::uint64_t> mine, std::vector<float>& found) const;

  const run::Workspace& workspace_;
  const TrainerOptions& options_;
  Exchange& exchange_;
  std::uint64_t steps_ = 0;
  std::vector<float> reports_;
};

}  // namespace halfstep::train
