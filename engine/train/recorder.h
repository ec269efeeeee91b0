#pragma once

#include <halfstep/recorder.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/program.h"
#include "train/balancer.h"
#include "train/batches.h"
#include "train/reports.h"

namespace halfstep::train {

/// The flight recorder: a second program of the training step, with dispatches in it that look at tensors.
class Recorder {
 public:
  using Made = std::function<void(run::Program&)>;

  /// `graph` and `options` are those of the training program, and must outlive this, as must the others. `made` is
  /// called with each program before it runs.
  Recorder(run::Workspace workspace, const step::StepGraph& graph, const TrainerOptions& options,
           const Balancer& balancer, Reports& reports, Batches& batches, Made made);

  /// The step with dispatches that look at what `pattern` matches; nothing for an empty one. Throws Error as
  /// Inspector::watch does, and changes nothing.
  std::optional<step::StepProgram> looking_at(std::string_view pattern, std::uint64_t every) const;
  /// Goes on with what looking_at() gave for these two. All steps must have finished.
  void watch(std::string_view pattern, std::uint64_t every, std::optional<step::StepProgram> lowered);
  /// Makes the program, where tensors are looked at, for the balancer's present share. All steps must have finished.
  /// May be called again where it threw.
  void take_share();
  /// The program, where there is one; null where there is none.
  run::Program* program() { return program_.get(); }
  /// Whether the next step is to be taken with it.
  bool looks_at_next_step() const { return program_ && batches_.steps() % every_ == 0; }
  /// What was seen in the steps whose reports were read, since the last call.
  std::vector<TensorStatistics> take_records();
  /// See Inspector::trace. All steps must have finished.
  std::vector<float> trace(std::string_view name);

 private:
  step::StepProgram lower(const step::Watch& watch) const;
  void make(step::StepProgram lowered);
  void read(const run::Slot& slot);
  void stop_where_broken(const run::Slot& slot);
  std::string describe(const step::Watched& broken, const run::Slot& slot) const;
  std::vector<float> values_of(const step::Recorded& tensor, const run::Slot& slot) const {
    return program_->read(slot, tensor.memory, tensor.type);
  }
  const std::vector<step::Watched>& watched() const { return program_->lowered().watched; }

  run::Workspace workspace_;
  const step::StepGraph& graph_;
  const TrainerOptions& options_;
  const Balancer& balancer_;
  Reports& reports_;
  Batches& batches_;
  Made made_;
  step::Watch watch_;
  std::uint64_t every_ = 1;  ///< one step out of so many is looked at
  std::unique_ptr<run::Program> program_;
  std::vector<TensorStatistics> records_;
};

}  // namespace halfstep::train
