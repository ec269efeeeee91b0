#include <halfstep/error.h>
#include <halfstep/inspector.h>

#include <algorithm>
#include <iterator>

#include "train/planned.h"
#include "train/profile.h"
#include "train/texts.h"
#include "train/timed_steps.h"
#include "train/trainer_impl.h"

namespace halfstep {
namespace {

void check_profiled(Trainer::Impl& trainer) {
  if (trainer.parts.size() > 1) fail("profile", "expected a trainer of one length, got one with buckets");
  if (trainer.rank_exchange) fail("profile", "expected one rank to time the dispatches of, got several");
  trainer.finish();
}

std::vector<DispatchCost> profiled(Trainer::Impl& trainer, std::int64_t steps, const Trainer::Impl::Fill& fill) {
  check_profiled(trainer);
  const auto read = [&](const run::Program& program, const run::Slot& slot) { trainer.reports->read(program, slot); };
  return train::profile(*trainer.own().training, steps, read, fill, [&] { trainer.batches->count_step(); });
}

}  // namespace

void Inspector::watch(std::string_view pattern, std::uint64_t every) {
  trainer_->finish();
  for (const auto& part : trainer_->parts) part->recorder->watch(pattern, every);
}
std::vector<TensorStatistics> Inspector::take_records() {
  trainer_->poll();
  std::vector<TensorStatistics> all;
  for (const auto& part : trainer_->parts) std::ranges::move(part->recorder->take_records(), std::back_inserter(all));
  std::ranges::stable_sort(all, {}, &TensorStatistics::step);
  return all;
}
std::vector<float> Inspector::trace(std::string_view name) {
  trainer_->finish();
  return trainer_->parts[trainer_->last_part]->recorder->trace(name);
}
std::vector<StepReport> Inspector::take_reports() {
  trainer_->poll();
  return trainer_->reports->take();
}
const PlanSummary& Inspector::summary() const {
  return trainer_->summary;
}
HostCosts Inspector::host_costs() const {
  std::uint64_t waits = 0;
  std::uint64_t submits = 0;
  for (const auto& part : trainer_->parts) {
    waits += part->training->slots().waits();
    submits = std::max<std::uint64_t>(submits, part->training->slots().last().recording->pieces());
  }
  return {.steps = trainer_->batches->steps(),
          .microseconds_per_step = trainer_->host_times.median(),
          .waits_for_slot = waits,
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
Timeline Inspector::timeline(std::int64_t steps) {
  check_profiled(*trainer_);
  const auto read = [this](const run::Program& program, const run::Slot& slot) {
    trainer_->reports->read(program, slot);
  };
  return train::timeline(*trainer_->own().training, steps, read, trainer_->from_supply(), *trainer_->batches);
}
PlannedStep Inspector::planned() const {
  return train::planned(trainer_->own().training->plan().program);
}
std::string Inspector::plan() const {
  return train::plan_text(trainer_->summary, trainer_->own().training->plan(), trainer_->workspace.store->spec());
}
std::string Inspector::explain() const {
  return train::explain_text(trainer_->own().graph, trainer_->options, trainer_->workspace.store->spec());
}

}  // namespace halfstep
