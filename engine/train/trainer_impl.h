#pragma once

#include <halfstep/inspector.h>

#include <functional>
#include <memory>

#include "run/program.h"
#include "train/batches.h"
#include "train/checkpoints.h"
#include "train/evaluator.h"
#include "train/host_times.h"
#include "train/recorder.h"
#include "train/reports.h"
#include "train/workspace.h"

namespace halfstep {

/// A training program over a store, and the owners of what is around it. Trainer's and Inspector's functions go to
/// these owners.
class Trainer::Impl {
 public:
  using Fill = std::function<void(const run::Program&, run::Slot&)>;

  Impl(const Device& device, const Graph& written, const TrainerOptions& asked);

  /// Submits one step on what `fill` puts into its slot.
  void step(const Fill& fill);
  /// Waits for every step submitted, and reads their reports.
  void finish();
  /// Reads the reports of steps that have finished.
  void poll();
  Evaluation evaluate(const Dataset& set, Weights weights, const std::function<bool()>& stop);
  ResumePoint load(const std::filesystem::path& path);
  void set_parameter(std::string_view name, std::span<const float> values);

  /// What steps are filled with: the next batch of the set or source, or values. Throws Error where there is none, or
  /// no such input.
  Fill from_supply();
  Fill from_values(const std::map<std::string, Values>& inputs);

  TrainerOptions options;
  step::StepGraph graph;
  Workspace workspace;
  PlanSummary summary;
  std::unique_ptr<train::Reports> reports;
  std::unique_ptr<train::Batches> batches;
  std::unique_ptr<run::Program> training;
  std::unique_ptr<train::Evaluator> evaluator;           ///< where there is a Feed
  std::unique_ptr<train::Evaluator> averaged_evaluator;  ///< and averages
  std::unique_ptr<train::Recorder> recorder;
  std::unique_ptr<train::Checkpoints> checkpoints;
  train::HostTimes host_times;
  std::uint64_t waits_elsewhere = 0;  ///< of steps, other than for slots and batches

 private:
  void place_data(const TrainerOptions& asked, state::StoreSpec& spec);
  void make_programs(const TrainerOptions& asked, state::StoreSpec spec, const step::StepGraph& evaluated,
                     std::vector<step::StepProgram> lowered);
  void stop_at_floor();
};

}  // namespace halfstep
