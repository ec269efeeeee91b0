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

/// Calls `step`, which submits a run of a program with timestamps, `steps` times, and waits for each run; see
/// Inspector::profile.
std::vector<DispatchCost> profile(run::Program& timed, std::int64_t steps, const std::function<void()>& step);

}  // namespace halfstep::train
