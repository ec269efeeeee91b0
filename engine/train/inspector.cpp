#include <halfstep/inspector.h>

#include "train/profile.h"
#include "train/texts.h"
#include "train/trainer_impl.h"

namespace halfstep {
namespace {

std::vector<DispatchCost> profiled(Trainer::Impl& trainer, std::int64_t steps, const Trainer::Impl::Fill& fill) {
  trainer.finish();
  const auto read = [&](const run::Program& program, const run::Slot& slot) { trainer.reports->read(program, slot); };
  return train::profile(*trainer.training, steps, read, fill, [&] { trainer.batches->count_step(); });
}

}  // namespace

void Inspector::watch(std::string_view pattern, std::uint64_t every) {
  trainer_->finish();
  trainer_->recorder->watch(pattern, every);
}
std::vector<TensorStatistics> Inspector::take_records() {
  trainer_->poll();
  return trainer_->recorder->take_records();
}
std::vector<float> Inspector::trace(std::string_view name) {
  trainer_->finish();
  return trainer_->recorder->trace(name);
}
const PlanSummary& Inspector::summary() const {
  return trainer_->summary;
}
HostCosts Inspector::host_costs() const {
  return {.steps = trainer_->batches->steps(),
          .microseconds_per_step = trainer_->host_times.median(),
          .waits_for_slot = trainer_->training->slots().waits(),
          .waits_for_batch = trainer_->batches->waits(),
          .waits_elsewhere = trainer_->waits_elsewhere};
}
std::vector<DispatchCost> Inspector::profile(std::int64_t steps) {
  return profiled(*trainer_, steps, trainer_->from_supply());
}
std::vector<DispatchCost> Inspector::profile(std::int64_t steps, const std::map<std::string, Values>& inputs) {
  return profiled(*trainer_, steps, trainer_->from_values(inputs));
}
std::string Inspector::plan() const {
  return train::plan_text(trainer_->summary, trainer_->training->plan(), trainer_->workspace.store->spec());
}
std::string Inspector::explain() const {
  return train::explain_text(trainer_->graph, trainer_->options, trainer_->workspace.store->spec());
}

}  // namespace halfstep
