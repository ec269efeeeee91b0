#pragma once

#include <halfstep/inspector.h>

#include <functional>

#include "run/program.h"
#include "train/batches.h"

namespace halfstep::train {

/// What a timeline is made from: a training's steps with a timestamp after every dispatch.
struct TimedSteps {
  using Fill = std::function<void(const run::Program&, run::Slot&)>;

  /// The program that runs them. `finished` is called with each run's slot, even after an error has ended the timeline.
  std::function<run::Program&(std::function<void(const run::Slot&)> finished)> make;
  /// Submits one, on what its argument puts into a slot. Does not wait for it.
  std::function<void(const Fill&)> step;
  Fill fill;                   ///< puts what a step needs into its slot
  std::function<bool()> stop;  ///< whether a step was the last; empty: none is before all are made
};

/// Takes up to `steps` steps without waiting for one before the next is submitted; see Inspector::timeline.
Timeline timeline(const TimedSteps& timed, std::int64_t steps, LoadTimes& load_times);

}  // namespace halfstep::train
