// The training programs of a rank whose share of each step's micro-batches may change.
#include "train/trainer_impl.h"

namespace halfstep {

void Trainer::Impl::make_training(Part& part, step::StepProgram lowered) {
  part.training = std::make_unique<run::Program>(
      workspace, std::move(lowered),
      [this](const run::Program& program, const run::Slot& slot) { reports->read(program, slot); });
  if (rank_exchange) rank_exchange->take_part(*part.training);
}

/// A recording has all micro-batches of a step, so it is made anew; so is what the loader's thread gathers ahead.
void Trainer::Impl::take_share() {
  finish();
  const step::Share share = balancer->share();
  for (const auto& part : parts) {
    waits_elsewhere += part->training->slots().waits();
    part->training.reset();
    make_training(*part, step::training_program(workspace.runtime->target, part->graph, workspace.store->spec().layout,
                                                options, share));
    part->recorder->take_share();
  }
  batches->take(share);
}

}  // namespace halfstep
