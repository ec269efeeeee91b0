#include <halfstep/error.h>

#include <fmt/format.h>

#include <algorithm>

#include "train/trainer_impl.h"

namespace halfstep {
namespace {

/// The dispatches of a plan, in order, without their times.
std::vector<DispatchCost> dispatches_of(const plan::Program& program) {
  std::vector<DispatchCost> costs;
  for (const plan::Dispatch& dispatch : program.dispatches) {
    DispatchCost& cost = costs.emplace_back();
    cost.label = dispatch.label + (dispatch.again ? " (again)" : "");
    cost.shader = dispatch.shader;
    cost.flops = dispatch.flops;
    cost.bytes = plan::bytes_touched(program, dispatch);
  }
  return costs;
}

/// The median length, in milliseconds.
double median_of(const std::vector<Interval>& runs) {
  std::vector<double> lengths;
  for (const Interval& run : runs) lengths.push_back((run.end - run.begin) / 1000);
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::ranges::nth_element(lengths, middle);
  return *middle;
}

}  // namespace

std::vector<DispatchCost> Trainer::Impl::profile(std::int64_t steps) {
  check_set();
  return profile(steps, [this](step::Slot& slot) { fill_from_set(slot); });
}

std::vector<DispatchCost> Trainer::Impl::profile(std::int64_t steps, const std::map<std::string, Values>& inputs) {
  check_inputs(inputs);
  return profile(steps, [&](step::Slot& slot) { fill_from_values(slot, inputs); });
}

std::vector<DispatchCost> Trainer::Impl::profile(std::int64_t steps, const std::function<void(step::Slot&)>& fill) {
  if (steps < 1) fail("profile", fmt::format("expected at least one step, got {}", steps));
  if (context_.capabilities().timestamp_bits == 0) fail("profile", "expected a queue with timestamps, got one without");
  finish();
  step::Slots slots(context_, pipelines_, timeline_, training_, buffers(),
                    [this](const step::Slot& slot) { read_report(slot); }, {.timestamps = true});
  std::vector<DispatchCost> costs = dispatches_of(training_.plan.program);
  for (std::int64_t i = 0; i < steps; ++i) {
    step::Slot& slot = slots.acquire();
    fill(slot);
    slots.submit();
    ++submitted_;
    slots.drain();
    const std::vector<double> microseconds = slot.recording->commands().timestamps();
    for (std::size_t j = 0; j < costs.size(); ++j) {
      costs[j].runs.push_back({microseconds[j], microseconds[j + 1]});
    }
  }
  for (DispatchCost& cost : costs) cost.milliseconds = median_of(cost.runs);
  return costs;
}

}  // namespace halfstep
