#pragma once

#include <halfstep/inspector.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "run/program.h"

namespace halfstep::train {

/// The dispatches of a plan, in order, without their times.
std::vector<DispatchCost> dispatches_of(const plan::Program& program);
/// Sets each dispatch's median time from its runs.
void set_medians(std::vector<DispatchCost>& costs);
/// Throws Error unless `steps` is positive and the program's queue has timestamps.
void check_timed(const run::Program& program, std::int64_t steps);

/// Submits a run of a timed program to its end. The program goes with its caller, so nothing else could end a step that
/// was submitted in part: where memory runs out in the middle, tries again for a second.
void submit_whole(run::Slots& slots);

/// Runs what a program does `steps` times, waiting for each, from a recording with a timestamp after every dispatch;
/// see Inspector::profile. `fill` puts what a run needs into its slot, `submitted` is called after each submit, and
/// `read` with each run's report.
std::vector<DispatchCost> profile(const run::Program& program, std::int64_t steps, run::Program::ReadReport read,
                                  const std::function<void(const run::Program&, run::Slot&)>& fill,
                                  const std::function<void()>& submitted);

}  // namespace halfstep::train
