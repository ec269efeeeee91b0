#pragma once

#include <halfstep/inspector.h>

#include <functional>

#include "run/program.h"
#include "train/batches.h"

namespace halfstep::train {

/// Runs what a program does `steps` times, from recordings with a timestamp after every dispatch, without waiting for
/// one before the next is submitted; see Inspector::timeline. `fill` puts what a run needs into its slot, and `read` is
/// called with each run's report.
Timeline timeline(const run::Program& program, std::int64_t steps, run::Program::ReadReport read,
                  const std::function<void(const run::Program&, run::Slot&)>& fill, Batches& batches);

}  // namespace halfstep::train
