#include "step/report.h"
#include "step/stages.h"

namespace halfstep::step {
namespace {

std::uint32_t count_of_rates(const Optimizer& optimizer) {
  return static_cast<std::uint32_t>(optimizer->rate().rates.size());
}

/// Sets the next rates of the optimizers other than the trainer's own, whose rate is in the StepState.
void set_next_rates(const StageContext& step) {
  struct Push {
    std::uint32_t optimizer;
    std::uint32_t first_rate;
    std::uint32_t rates;
  };
  const std::vector<Optimizer>& optimizers = step.layout.optimizers;
  const plan::TensorId schedule = step.builder.place_bytes(
      "schedule", step.layout.first_rate(optimizers.size()) * sizeof(float), {state::buffers::schedule, 0});
  for (std::size_t i = 1; i < optimizers.size(); ++i) {
    step.builder.dispatch({.label = "rescale",
                           .shader = "next_rate",
                           .constants = {},
                           .push = plan::push_bytes(Push{static_cast<std::uint32_t>(i - 1),
                                                         static_cast<std::uint32_t>(step.layout.first_rate(i)),
                                                         count_of_rates(optimizers[i])}),
                           .operands = {{step.state, plan::Access::read_write}, {schedule, plan::Access::read}}});
  }
}

}  // namespace

void rescale(const StageContext& step) {
  struct Push {
    float growth;
    float backoff;
    std::uint32_t interval;
    float floor;
    float ceiling;
    std::uint32_t rates;
  };
  set_next_rates(step);
  const LossScale& scale = step.options.precision.loss_scale;
  const bool dynamic = scale.kind == LossScale::Kind::dynamic;
  const std::uint32_t rates = count_of_rates(step.layout.optimizers.front());
  const plan::TensorId schedule =
      step.builder.place_bytes("schedule", std::uint64_t{rates} * 4, {state::buffers::schedule, 0});
  const plan::TensorId report = step.builder.place_bytes("report", sizeof(ReportHeader), {state::buffers::report, 0});
  step.builder.dispatch(
      {.label = "rescale",
       .shader = "rescale",
       .constants = {1, dynamic},
       .push = plan::push_bytes(Push{scale.growth, scale.backoff, scale.interval, scale.floor, scale.ceiling, rates}),
       .operands = {
           {step.state, plan::Access::read_write}, {schedule, plan::Access::read}, {report, plan::Access::read_write}}});
}

}  // namespace halfstep::step
