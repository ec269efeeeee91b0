#pragma once

#include <halfstep/tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/upload_ring.h"
#include "run/runtime.h"
#include "run/slots.h"
#include "step/step_program.h"

namespace halfstep::run {

/// A graph that was lowered over a store, with the memory and the recordings that it takes to run it: a training step,
/// an evaluation, a prediction. It knows nothing of who runs it; any number of programs, of other batch sizes or other
/// graphs, may work on one store. They run in the order they are submitted in.
class Program {
 public:
  using ReadReport = std::function<void(const Program&, const Slot&)>;
  struct Options {
    std::size_t slots = 2;    ///< runs that may be under way at once
    bool own_arena = false;   ///< whether what a run leaves in the arena stays until the next
    bool timestamps = false;  ///< see step::Recording
  };

  /// `read` is told of every run that finished, in order; see Slots. Throws Error where there is no memory for it.
  Program(Workspace workspace, step::StepProgram lowered, ReadReport read, Options options);
  Program(Workspace workspace, step::StepProgram lowered, ReadReport read)
      : Program(std::move(workspace), std::move(lowered), std::move(read), Options{}) {}

  const plan::Plan& plan() const { return lowered_.plan; }
  const step::StepProgram& lowered() const { return lowered_; }
  const Workspace& workspace() const { return workspace_; }
  Slots& slots() { return slots_; }
  /// Records a run into an application's command buffer, with a slot that is kept for that, and which the first call
  /// makes. With an arena of its own, it may run while a run of another program is open.
  void record(VkCommandBuffer commands, bool own_arena);
  /// Reads the report of the next run, one after the other, of what record() recorded, of a training step, which must
  /// have finished. Returns false, and passes over the run, where later ones have written over its report. Throws Error
  /// where nothing was recorded, or no further run has finished.
  bool read_recorded();
  /// Bytes of what its runs are given and give back.
  std::uint64_t slot_bytes() const;

  /// Throws Error where one of these is for no input of the graph.
  void check_names(std::string_view who, const std::map<std::string, Values>& inputs) const;
  /// Puts values for every input into a slot, those of all micro-batches one after the other. Throws Error that begins
  /// with `who` where an input is missing, or of another type or number of values.
  void fill(Slot& slot, std::string_view who, const std::map<std::string, Values>& inputs) const;
  /// Puts a gathered batch into a slot.
  void fill(Slot& slot, const data::HostBatch& batch) const;
  /// Puts the places of samples in the set that is kept on the device into a slot.
  void fill(Slot& slot, std::span<const std::uint32_t> indices) const;

  /// What a finished run reports: output `index` of the graph, of one micro-batch.
  std::vector<float> output(const Slot& slot, std::size_t index, std::uint32_t micro_batch = 0) const;
  /// The same of a scalar: the mean over all micro-batches, where rows are counted over those; 0 if there are none.
  float mean_output(const Slot& slot, std::size_t index) const;
  /// Any tensor of the program's, as the run in `slot` left it. Scales of
  /// gradients of their own are undone.
  std::vector<float> read(const Slot& slot, plan::TensorId tensor, const TensorType& type) const;

 private:
  std::vector<const vk::Buffer*> buffers(const vk::Buffer& arena) const;

  Workspace workspace_;
  step::StepProgram lowered_;
  std::shared_ptr<const vk::Buffer> arena_;
  std::vector<vk::Buffer> shared_;  ///< StepProgram::shared
  ReadReport read_;
  Slots slots_;
  std::shared_ptr<const vk::Buffer> recorded_arena_{};
  std::unique_ptr<Slot> recorded_{};
  std::uint32_t recorded_runs_ = 0;  ///< whose reports were read, or passed over
};

}  // namespace halfstep::run
