#pragma once

#include <halfstep/recorder.h>
#include <halfstep/trainer.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace halfstep {

/// The size and cost of a compiled step.
struct PlanSummary {
  std::int64_t parameters = 0;  ///< trainable scalars
  std::uint64_t dispatches = 0;
  std::uint64_t barriers = 0;
  /// Activations, intermediate gradients, workspaces: the peak of a step, or of an evaluation where that takes more.
  std::uint64_t arena_bytes = 0;
  std::uint64_t arena_bytes_unshared = 0;    ///< the same if no memory were reused
  std::uint64_t arena_bytes_kept = 0;        ///< the same if nothing were recomputed (TrainerOptions::recompute)
  double flops = 0;                          ///< of matrix products and convolutions; a multiply-add counts as two
  double recomputed_flops = 0;               ///< the part of `flops` that is recomputation
  std::uint64_t bytes_moved = 0;             ///< the sum of PlannedDispatch::bytes
  std::uint64_t recomputed_bytes_moved = 0;  ///< the part of `bytes_moved` that is recomputation
  std::uint64_t weight_bytes = 0;            ///< weights, with masters and f16 copies
  std::uint64_t gradient_bytes = 0;          ///< with the sums over micro-batches
  std::uint64_t optimizer_bytes = 0;
  std::uint64_t average_bytes = 0;  ///< weight averages, and the copy of them that evaluation reads
  std::uint64_t data_bytes = 0;     ///< of the training set, if it is kept on the device, and of means for its fields
  std::uint64_t peak_bytes = 0;     ///< total, without the memory of the flight recorder
};

/// Host time of the steps so far, and how often the host waited.
struct HostCosts {
  std::uint64_t steps = 0;
  double microseconds_per_step = 0;   ///< inside step(), without waits for a free slot and exchanges of ranks (median)
  std::uint64_t waits_for_slot = 0;   ///< times that step() found both slots busy
  std::uint64_t waits_for_batch = 0;  ///< times that step() waited for a batch of a set in host memory, or of a source
  std::uint64_t waits_elsewhere = 0;  ///< other fence waits while a step is submitted, not for ranks: always 0
  std::uint64_t submits = 0;          ///< of the last step, of that bucket that takes the most; see DeviceSettings
};

/// When a dispatch ran, in microseconds on the device's clock since the start of its step.
struct Interval {
  double begin = 0;
  double end = 0;
};

/// What one dispatch of the step does and costs; see Inspector::profile.
struct DispatchCost {
  std::string label;           ///< the operator, or the stage of the step: "conv1/conv2d", "update"
  std::string shader;          ///< the kernel's variant
  double milliseconds = 0;     ///< median
  std::vector<Interval> runs;  ///< one interval per step, in order
  double flops = 0;            ///< a multiply-add counts as two; 0 if it only moves data
  std::uint64_t bytes = 0;     ///< see PlannedDispatch
};

/// A tensor of a compiled step.
struct PlannedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t bytes = 0;  ///< with the padding of its rows
  std::string buffer;       ///< that it lies in: "arena", "weights", "gradients", ...
};

/// One dispatch of a compiled step.
struct PlannedDispatch {
  std::string label;   ///< the operator, or several that were fused: "conv1/conv2d + relu"
  std::string shader;  ///< the kernel's variant
  std::string phase;   ///< "feed", "forward", "backward" or "update"
  bool recomputed = false;
  double flops = 0;
  /// Of the tensors it reads and writes; of a training set, or a table of embeddings, of what it can look up at most.
  std::uint64_t bytes = 0;
  /// A tensor that it reads: its index, and the last dispatch before it that wrote some of it; -1: none of this step.
  struct Read {
    std::size_t tensor = 0;
    std::ptrdiff_t from = -1;
  };
  std::vector<Read> reads;
  std::vector<std::size_t> writes;  ///< indices of tensors
};

/// A compiled step as a graph of its dispatches, in order, with the tensors that they exchange.
struct PlannedStep {
  std::vector<PlannedTensor> tensors;
  std::vector<PlannedDispatch> dispatches;
};

/// What the host did for a step in a Timeline.
struct HostSpan {
  /// "wait" for the device to finish the step before the previous one, "fill" the step's inputs, "submit", and on the
  /// loader's thread, "load" a batch.
  std::string what;
  std::uint64_t step = 0;  ///< index in the timeline; of "load": index of the batch
  Interval time;
};

/// Some steps on one clock: microseconds since the first of them began on the host.
struct Timeline {
  std::vector<DispatchCost> dispatches;  ///< their runs are on that clock
  std::vector<HostSpan> host;
  /// How far the device's times may be off the host's, either way: the device starts no step before it is submitted and
  /// ends none after the host has seen its end, and its clock was set to the middle of what that allows.
  double clock_error = 0;
};

/// Looks at a trainer's step: its plan, its costs, the numbers in its tensors. A view that copies freely; it must not
/// outlive the trainer, and is used by the same thread. Of a trainer with TrainerOptions::buckets, plan(), explain()
/// and summary() show the graph of the longest; records and traces are those of the graph that the step ran. watch(),
/// trace(), profile() and timeline() wait for all steps submitted before them; the others do not wait. Those that use
/// the device throw Error if it is lost or out of memory.
class HALFSTEP_API Inspector {
 public:
  /// Makes the flight recorder collect statistics of every tensor whose name matches `pattern`, in one step out of
  /// `every`. They are computed on the device and read with the step's report, so no step waits. "*gradient" matches
  /// the gradients of parameters. An empty pattern stops recording. Throws Error, and changes nothing, if no
  /// tensor matches, if `every` is 0, and for a trainer with Precision::stop_on or TrainerOptions::trace.
  void watch(std::string_view pattern, std::uint64_t every = 1);
  /// The recorder's statistics of finished steps since the last call, oldest first.
  std::vector<TensorStatistics> take_records();
  /// A tensor of the last step (of its last micro-batch), in row-major order. It must match TrainerOptions::trace.
  /// Gradients are multiplied by the loss scale, but not by a scale of their own; a parameter's is the mean over all
  /// micro-batches, and ranks. Throws Error for other names, and before the first step.
  std::vector<float> trace(std::string_view name);

  /// The reports of the steps that finished since the last call, in order. They are kept from the first call on, which
  /// returns none: whoever calls it once, calls it again. Does not wait.
  std::vector<StepReport> take_reports();

  /// Sizes and costs of the compiled step.
  const PlanSummary& summary() const;
  /// The step as a graph: its dispatches, after fusion, and its tensors.
  PlannedStep planned() const;
  HostCosts host_costs() const;
  /// Runs `steps` more training steps, like step(), from a recording with a timestamp after every dispatch, and waits
  /// for each. Returns every dispatch in order. The timestamps prevent dispatches from overlapping, so the sum may
  /// exceed the time of an ordinary step. Throws Error, and makes no step, unless `steps` is positive and the queue has
  /// timestamps, for a trainer with buckets, whose steps differ, for one of several ranks, and for one with
  /// Precision::stop_on or TrainerOptions::trace, since these steps look at no tensors. Otherwise throws as step()
  /// does, after some of the steps; a step that it leaves open is ended by what waits for steps and by the next step(),
  /// which makes another after it.
  std::vector<DispatchCost> profile(std::int64_t steps);
  /// Likewise for steps with values for every input.
  std::vector<DispatchCost> profile(std::int64_t steps, const std::map<std::string, Values>& inputs);
  /// Likewise, but submits steps as step() does, one while the device works on the one before, and returns when the
  /// device and the host did what. Makes fewer steps, but one, where `stop`, which is called after each, returns true.
  /// Throws as profile() does.
  Timeline timeline(std::int64_t steps, const std::function<bool()>& stop = {});
  /// Text for display: every dispatch in order, with its memory and barriers.
  std::string plan() const;
  /// Text for display: for each operator the types that it stores, computes and accumulates in, and why.
  std::string explain() const;

 private:
  friend class Trainer;
  explicit Inspector(Trainer::Impl& trainer) : trainer_(&trainer) {}

  Trainer::Impl* trainer_;
};

}  // namespace halfstep
