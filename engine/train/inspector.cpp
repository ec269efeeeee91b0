#include <halfstep/error.h>
#include <halfstep/inspector.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "train/planned.h"
#include "train/profile.h"
#include "train/texts.h"
#include "train/timed_steps.h"
#include "train/trainer_impl.h"

namespace halfstep {
namespace {

/// Makes the program of steps that are timed. `finished` is called with each one's slot.
run::Program& make_timed(Trainer::Impl& trainer, std::int64_t steps, std::function<void(const run::Slot&)> finished) {
  if (trainer.parts.size() > 1) fail("profile", "expected a trainer of one length, got one with buckets");
  if (trainer.rank_exchange) fail("profile", "expected one rank to time the dispatches of, got several");
  const TrainerOptions& options = trainer.options;
  if (options.precision.stop_on.any() || !options.trace.empty()) {
    fail("profile",
         "expected a trainer without Precision::stop_on and TrainerOptions::trace, got one that looks at tensors",
         "steps that are timed look at none");
  }
  const run::Program& own = trainer.training();
  train::check_timed(own, steps);
  trainer.finish();
  trainer.timed.reset();  // which an error has left
  const auto read = [&trainer, finished = std::move(finished)](const run::Program& program, const run::Slot& slot) {
    finished(slot);
    trainer.reports->read(program, slot);
  };
  trainer.timed =
      std::make_unique<run::Program>(own.workspace(), own.lowered(), read, run::Program::Options{.timestamps = true});
  return *trainer.timed;
}

std::vector<DispatchCost> profiled(Trainer::Impl& trainer, std::int64_t steps, const Trainer::Impl::Fill& fill) {
  run::Program& timed = make_timed(trainer, steps, [](const run::Slot&) {});
  std::vector<DispatchCost> costs = train::profile(timed, steps, [&] { trainer.timed_step(fill); });
  trainer.timed.reset();
  return costs;
}

}  // namespace

void Inspector::watch(std::string_view pattern, std::uint64_t every) {
  trainer_->together([&](Trainer::Impl& trainer) {
    trainer.finish();
    std::vector<std::optional<step::StepProgram>> lowered;  // of all, before any of them changes
    for (const auto& part : trainer.parts) lowered.push_back(part->recorder->looking_at(pattern, every));
    for (std::size_t i = 0; i < lowered.size(); ++i) {
      trainer.parts[i]->recorder->watch(pattern, every, std::move(lowered[i]));
    }
  });
}
std::vector<TensorStatistics> Inspector::take_records() {
  trainer_->together([](Trainer::Impl& trainer) { trainer.poll(); });
  std::vector<TensorStatistics> all;
  for (const auto& part : trainer_->parts) std::ranges::move(part->recorder->take_records(), std::back_inserter(all));
  std::ranges::stable_sort(all, {}, &TensorStatistics::step);
  return all;
}
std::vector<float> Inspector::trace(std::string_view name) {
  return trainer_->together([&](Trainer::Impl& trainer) {
    trainer.finish();
    return trainer.parts[trainer.last_part]->recorder->trace(name);
  });
}
std::vector<StepReport> Inspector::take_reports() {
  trainer_->together([](Trainer::Impl& trainer) { trainer.poll(); });
  return trainer_->reports->take();
}
const PlanSummary& Inspector::summary() const {
  return trainer_->summary;
}
HostCosts Inspector::host_costs() const {
  std::uint64_t submits = 0;
  for (const auto& part : trainer_->parts) {
    if (!part->training) continue;
    submits = std::max<std::uint64_t>(submits, part->training->slots().last().recording->pieces());
  }
  return {.steps = trainer_->batches->steps(),
          .microseconds_per_step = trainer_->host_times.median(),
          .waits_for_slot = trainer_->waits_for_slot,
          .waits_for_batch = trainer_->batches->waits(),
          .waits_elsewhere = trainer_->waits_elsewhere,
          .submits = submits};
}
std::vector<DispatchCost> Inspector::profile(std::int64_t steps) {
  return profiled(*trainer_, steps, trainer_->from_supply());
}
std::vector<DispatchCost> Inspector::profile(std::int64_t steps, const std::map<std::string, Values>& inputs) {
  return profiled(*trainer_, steps, trainer_->from_values(inputs));
}
Timeline Inspector::timeline(std::int64_t steps, const std::function<bool()>& stop) {
  Trainer::Impl& trainer = *trainer_;
  const train::TimedSteps timed{
      .make = [&](std::function<void(const run::Slot&)> finished) -> run::Program& {
        return make_timed(trainer, steps, std::move(finished));
      },
      .step = [&](const Trainer::Impl::Fill& fill) { trainer.timed_step(fill); },
      .fill = trainer.from_supply(),
      .stop = stop,
  };
  Timeline timeline = train::timeline(timed, steps, trainer.batches->load_times());
  trainer.timed.reset();
  return timeline;
}
PlannedStep Inspector::planned() const {
  return train::planned(trainer_->training().plan().program);
}
std::string Inspector::plan() const {
  return train::plan_text(trainer_->summary, trainer_->training().plan(), trainer_->workspace.store->spec());
}
std::string Inspector::explain() const {
  return train::explain_text(trainer_->own().graph, trainer_->options, trainer_->workspace.store->spec());
}

}  // namespace halfstep
