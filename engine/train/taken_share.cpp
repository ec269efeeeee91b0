// The training programs of a rank whose share of each step's micro-batches may change.
#include <halfstep/error.h>

#include "train/trainer_impl.h"

namespace halfstep {

void Trainer::Impl::make_training(Part& part, step::StepProgram lowered) {
  part.training = std::make_unique<run::Program>(
      workspace, std::move(lowered),
      [this](const run::Program& program, const run::Slot& slot) { reports->read(program, slot); });
  if (rank_exchange) rank_exchange->take_part(*part.training);
}

/// A recording has all micro-batches of a step, so it is made anew; so is what the loader's thread gathers ahead. Where
/// this throws, a part may be left without a program, and the next step does it again.
void Trainer::Impl::take_share() {
  share_taken_ = false;
  finish();
  const step::Share share = balancer->share();
  for (const auto& part : parts) {
    part->training.reset();
    make_training(*part, step::training_program(workspace.runtime->target, part->graph, workspace.store->spec().layout,
                                                options, share));
    part->recorder->take_share();
  }
  batches->take(share);
  share_taken_ = true;
}

run::Program& Trainer::Impl::training() const {
  if (own().training) return *own().training;
  fail("trainer", "expected a training program, got none since memory ran out for other parts of the ranks",
       "the next step makes it");
}

}  // namespace halfstep
