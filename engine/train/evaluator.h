#pragma once

#include <halfstep/data.h>
#include <halfstep/trainer.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "run/program.h"

namespace halfstep::train {

/// Loss and metrics over whole sets, by a program of its own over a store that others may share.
class Evaluator {
 public:
  /// `lowered` is step::evaluation_program of `graph`, which is fed with samples; `metrics` names its outputs after the
  /// loss.
  Evaluator(run::Workspace workspace, step::StepGraph graph, step::StepProgram lowered,
            std::vector<std::string> metrics);

  /// Every sample counts once. Waits for the results. `stop` is called before each batch and ends the evaluation early.
  /// Throws Error if the samples are not what the graph is fed with.
  Evaluation evaluate(const Dataset& set, const std::function<bool()>& stop);
  const run::Program& program() const { return program_; }

 private:
  void read(const run::Slot& slot);

  step::StepGraph graph_;
  std::vector<std::string> metrics_;
  Evaluation sums_;
  std::deque<std::int64_t> counts_;  ///< of different samples in the batches whose reports have yet to be read
  run::Program program_;
};

}  // namespace halfstep::train
