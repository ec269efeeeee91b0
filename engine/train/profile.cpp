#include "train/profile.h"

#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace halfstep::train {
namespace {

/// The median length, in milliseconds.
double median_of(const std::vector<Interval>& runs) {
  std::vector<double> lengths;
  for (const Interval& run : runs) lengths.push_back((run.end - run.begin) / 1000);
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::ranges::nth_element(lengths, middle);
  return *middle;
}

}  // namespace

std::vector<DispatchCost> dispatches_of(const plan::Program& program) {
  std::vector<DispatchCost> costs;
  for (const plan::Dispatch& dispatch : program.dispatches) {
    DispatchCost& cost = costs.emplace_back();
    cost.label = dispatch.label + (dispatch.recomputed ? " (recomputed)" : "");
    cost.shader = dispatch.shader;
    cost.flops = dispatch.flops;
    cost.bytes = plan::bytes_touched(program, dispatch);
  }
  return costs;
}

void set_medians(std::vector<DispatchCost>& costs) {
  for (DispatchCost& cost : costs) cost.milliseconds = median_of(cost.runs);
}

void check_timed(const run::Program& program, std::int64_t steps) {
  if (steps < 1) fail("profile", fmt::format("expected at least one step, got {}", steps));
  if (program.workspace().runtime->context().capabilities().timestamp_bits == 0) {
    fail("profile", "expected a queue with timestamps, got one without");
  }
}

std::vector<DispatchCost> profile(run::Program& timed, std::int64_t steps, const std::function<void()>& step) {
  std::vector<DispatchCost> costs = dispatches_of(timed.plan().program);
  for (std::int64_t i = 0; i < steps; ++i) {
    step();
    timed.slots().drain();
    const std::vector<step::DispatchTime>& times = timed.slots().last().recording->dispatch_times();
    for (std::size_t j = 0; j < costs.size(); ++j) costs[j].runs.push_back({times[j].begin, times[j].end});
  }
  set_medians(costs);
  return costs;
}

}  // namespace halfstep::train
