#pragma once

#include <halfstep/trainer_options.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "step/share.h"

namespace halfstep::train {

/// Throws Error where options of Balance cannot be, or others do not go with it.
void check_balance(const TrainerOptions& options);

/// How a step's micro-batches are divided over ranks, and when that changes: see Balance. What a rank takes for its
/// part of a step, from its begin until its gradients are complete, is the least of some steps, since other work of a
/// machine makes times longer, never shorter.
class Balancer {
 public:
  explicit Balancer(const TrainerOptions& options);

  step::Share share() const { return step::share_of(counts_, options_.ranks); }
  /// The most that this rank may ever have.
  step::Share largest_share() const;

  /// A step begins, or begins anew after an error; where it is time to, compares what ranks were measured to take.
  /// Returns whether parts are others from this step on. Called by every rank.
  bool begin_step();
  /// This rank has computed all of its gradients in the step, which counts: on every rank, once.
  void end_part() { note(std::chrono::duration<double>(Clock::now() - begin_).count()); }
  /// The same of a part that took so many seconds.
  void note(double seconds);

 private:
  using Clock = std::chrono::steady_clock;

  bool compare();
  std::vector<double> seconds_of_ranks() const;
  void look_again_in(std::int64_t steps);
  void tell(const std::string& why) const;

  const TrainerOptions& options_;
  bool measures_;
  std::vector<std::uint32_t> counts_;  ///< of each rank
  Clock::time_point begin_{};
  std::int64_t left_ = 0;     ///< steps until ranks are compared
  std::int64_t skipped_ = 0;  ///< so many of them are not measured
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace halfstep::train
