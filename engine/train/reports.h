#pragma once

#include <halfstep/trainer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "run/program.h"

namespace halfstep::train {

/// What finished steps report: the newest, and their sums.
class Reports {
 public:
  /// `metrics` are the names of a training graph's outputs after its loss, trained with `options`.
  Reports(std::vector<std::string> metrics, const TrainerOptions& options)
      : metrics_(std::move(metrics)),
        scale_(options.precision.loss_scale),
        has_norm_(options.clip_norm > 0 || options.gradient_norm) {}

  /// Takes note of a finished step of a training program.
  void read(const run::Program& program, const run::Slot& slot);
  const StepReport& latest() const { return latest_; }
  /// Those since the last call, in order; they are kept from the first call on.
  std::vector<StepReport> take();
  /// The totals since the last call.
  StepTotals take_totals();
  /// The first step whose gradients overflowed with a dynamic loss scale at its floor; 0 for none.
  std::uint64_t overflowed_at_floor() const { return overflowed_at_floor_; }
  std::uint64_t take_overflowed_at_floor() { return std::exchange(overflowed_at_floor_, 0); }
  /// Goes on from a checkpoint: steps before it are undone, an overflow at the floor among them.
  void resume(const StepReport& report) {
    latest_ = report;
    overflowed_at_floor_ = 0;
  }

 private:
  std::vector<std::string> metrics_;
  LossScale scale_;
  bool has_norm_;  ///< whether steps compute the norm of gradients
  StepReport latest_;
  std::optional<std::vector<StepReport>> kept_;
  StepTotals totals_;
  std::uint64_t finite_losses_ = 0;
  std::uint64_t overflowed_at_floor_ = 0;
};

}  // namespace halfstep::train
