#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/data.h>
#include <halfstep/device.h>
#include <halfstep/graph.h>
#include <halfstep/trainer_options.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halfstep {

/// The results of one finished step.
struct StepReport {
  std::uint64_t step = 0;     ///< steps attempted so far, this one included
  std::uint64_t applied = 0;  ///< updates made so far, of which 2^32 - 1 are counted
  std::uint64_t skipped = 0;  ///< steps skipped so far because a gradient was not finite
  std::uint64_t tensor_updates_skipped =
      0;                 ///< updates of single tensors that were skipped (Precision::gradient_scales)
  float loss = 0;        ///< unscaled
  float loss_scale = 1;  ///< in this step
  float rate = 0;        ///< in this step, of TrainerOptions::optimizer
  float clip = 1;        ///< the factor applied to this step's gradients for clip_norm
  /// Of all gradients together, unscaled and before clipping, without those of skipped tensors. NaN unless
  /// TrainerOptions::clip_norm or TrainerOptions::gradient_norm asks for it.
  float gradient_norm = std::numeric_limits<float>::quiet_NaN();
  bool overflowed = false;  ///< whether this step was skipped
  std::map<std::string, float> metrics{};
};

/// Totals over the steps finished since the last call of Trainer::take_totals.
struct StepTotals {
  std::uint64_t steps = 0;
  double mean_loss = 0;                          ///< unscaled; over all steps whose loss was finite
  std::map<std::string, double> mean_metrics{};  ///< empty where there are no steps
};

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;
  std::map<std::string, double> metrics{};
};

class Inspector;

/// Trains one graph. Compiling records the whole training step once; step() submits that recording and returns. Use it
/// from one thread at a time. Every member that reads or changes the training state waits for all steps submitted
/// before it; step() and report() do not. Every member that uses the device throws Error if the device
/// is lost or out of memory. After a loss, reopen() goes on. All members of a trainer that was moved from throw Error.
class HALFSTEP_API Trainer {
 public:
  /// Throws Error for anything that cannot be trained as requested. Options, shapes, the training set and the device's
  /// limits are checked here, so that step() throws only what it documents. Blocks, possibly for seconds, while it
  /// compiles and measures kernels and uploads the training set.
  static Trainer compile(const Device& device, const Graph& graph, TrainerOptions options);
  /// A model at any batch size: builds it in a graph, and says how it is trained.
  using Model = std::function<TrainerOptions(Graph& graph, std::int64_t batch)>;
  /// Compiles `model` for steps of `batch` samples such that they fit the device, or TrainerOptions::memory_limit: the
  /// whole batch at once if it fits; else with scopes recomputed, the outermost first, then those within (if the
  /// model's own `recompute` is empty); else in the fewest micro-batches of one size, likewise, each as `accumulate`
  /// does. Recomputing changes no bit; for what micro-batches change see `accumulate`. TrainerOptions::log is told what
  /// was chosen, and the bytes that were predicted and allocated. Calls `model` once for each size that it tries.
  /// A size with a tensor that is beyond a limit of the device, or of a kernel, does not fit either. Throws as the other
  /// does; if no size fits, down to a single sample or to 1,024 micro-batches, for the last one that was tried: with
  /// ErrorCode::out_of_memory where that needs more memory than there is.
  static Trainer compile(const Device& device, const Model& model, std::int64_t batch);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Submits one step on the next batch of the training set or source, in the order that BatchSampler::training draws
  /// from the seed, and returns without waiting for it. With TrainerOptions::buckets, runs the graph of the batch's
  /// bucket. Blocks until the step before the previous one has finished. If the set is not kept on the device
  /// (TrainerOptions::resident_limit), and with a source, also blocks until a worker thread has the batch. With
  /// Precision::stop_on, blocks until this step has finished. HostCosts counts the first two. Throws Error if there is
  /// no training set or source, or if the source failed (Source::fill). Throws Error that names the gradients if an
  /// earlier step overflowed with a dynamic loss scale at its floor; where ranks exchange gradients, on all of them, in
  /// place of the third step after that one. With Precision::stop_on, throws Error if this step is stopped; the step
  /// then changes nothing, and the next call takes the same batch again. Where memory runs out after a part of the step
  /// was submitted, throws Error and leaves the step open: the next step() or run_for() goes on with it, and makes no
  /// other; members that wait for steps end it, or throw.
  void step();
  /// Likewise with values for every input, for all micro-batches one after the other. The values are copied. Also
  /// throws Error, and submits nothing, if an input is missing, unknown, or has another type or number of values, and
  /// for a trainer with a Feed, whose steps take samples. Where an error left such a step open, takes the same values
  /// again and refuses others; finish() ends the step without them.
  void step(const std::map<std::string, Values>& inputs);

  /// Submits as much of a step on the next batch as is expected to take the device `budget`, and returns without
  /// waiting for it: for training within the frames of an application that has other work for the device. The next call
  /// goes on where this one ended. Weights and reports are those of step(), bit for bit. A first step is cut by
  /// predicted times, into some 4,000 pieces at most, later ones by measured times, into some 16,000: where a budget
  /// would make more, each may take longer than it. Without timestamps of the queue, or with a clock that stands still
  /// within a submit, the library keeps its first estimate, which assumes a phone's slow GPU. Dispatches that take
  /// longer are cut too, but for those of an application's own shaders and for single workgroups: one that takes longer
  /// than the budget is submitted alone.
  /// Submits nothing while the device still works on what the call before the last one submitted. Returns whether a
  /// step was submitted to its end. Throws Error, and submits nothing, if the budget is not positive; otherwise blocks
  /// and throws as step() does, where a step begins or ends. step(), and every member that waits for steps, submits the
  /// rest of the step first; so do a predictor on these weights, and the trainer's destructor.
  bool run_for(std::chrono::nanoseconds budget);

  /// Records one step into an application's own command buffer: a VkCommandBuffer in the recording state, outside of a
  /// render pass, of the adopted queue's family. It begins and ends with a barrier for all stages. It may be submitted
  /// to the adopted queue any number of times, each of which trains one step on what the buffers of
  /// TrainerOptions::shared_inputs contain then. Later changes of weights by other members of the trainer are seen. The
  /// trainer must outlive the command buffer's use. reopen(), and assigning another trainer to this one, destroy what
  /// the command buffer uses: it must not be executing then, nor be submitted again. Nothing is cut
  /// (DeviceSettings::submit_milliseconds). The command buffer must not be submitted while a step is open; finish()
  /// ends it. Leaves pipeline, descriptor sets and push constants of the compute bind point changed. The recorder
  /// (Inspector::watch) looks at none of these steps. Throws Error unless all inputs are shared, and where the host has
  /// a part in each step: with Precision::stop_on, TrainerOptions::trace, TrainerOptions::snapshot_every or several
  /// ranks. The command buffer is then as it was.
  void record(void* command_buffer);
  /// To be called once for each execution of a step that record() recorded, after it has finished, as a fence or
  /// semaphore of the application says: counts the step and reads its report. Reports are read in the order of the
  /// executions, of which later ones may be under way: the last 15 reports are kept. Members that read the training
  /// state expect that it was called for all. Throws Error, and counts nothing, if nothing was recorded or no further
  /// execution has finished. Throws Error where it was not called for more than 15 executions: the step is counted, its
  /// report is lost, and the next call goes on with the next one. Throws as step() does if gradients overflow at the
  /// loss scale's floor.
  void executed();

  /// The report of the newest finished step; does not wait.
  StepReport report();
  /// Waits for every step submitted so far.
  void finish();
  /// Calls finish() and returns the totals since the last call.
  StepTotals take_totals();
  /// Where ranks make steps by themselves (Ranks::sync_every), synchronises their weights unless they are, so that
  /// evaluate() and files have all that was trained. Every rank must call it. Waits for every step submitted, and for
  /// all ranks. Of other trainers does nothing.
  void synchronise();

  /// Loss and metrics over a whole set, with the current weights or their averages. Every sample counts once. Requires
  /// a Feed. Each field that it feeds must have the type and shape of the training set's (or source's), or follow from
  /// its input if there is neither: u8 for Feed::samples, otherwise f32 or u32, of the input's shape. Throws Error if
  /// one does not, or if the set is invalid (Dataset::check). Like every member that takes Weights, throws Error if
  /// averages are requested and there are none. Blocks until the whole set is evaluated, or until `stop`, which is
  /// called before each batch, returns true. The result then covers fewer samples than the set has; loss and metrics of
  /// no samples are NaN. Of several ranks, each asks its own `stop`, and the result, the same on all, covers the
  /// batches before the first at which one of them stopped. All of them must have one set, which may be called
  /// differently: each reads all of it first, and each throws Error where they differ. Loss and metrics must be means
  /// over the batch's samples; what is computed from cross_entropy or accuracy of labels that are fed may be a mean
  /// over those that count, and is one over the set's then (NaN, if none does). Samples left after the last full batch
  /// take a batch for each divisor of the batch size that adds up to them (BatchSampler::evaluation). With
  /// TrainerOptions::buckets, each batch runs in the graph of its bucket; also throws Error if a sample is longer than
  /// the longest.
  Evaluation evaluate(
      const Dataset& set, Weights weights = Weights::current, const std::function<bool()>& stop = [] { return false; });

  /// Writes weights, their averages, optimizer moments, loss scale, counters and seed atomically as a safetensors file.
  /// Waits for every step submitted, and for the disk. Of several ranks, rank 0 alone writes files, here and in
  /// save_weights().
  void save(const std::filesystem::path& path);
  /// Returns what save() would write, so that another thread can write it while training continues. Waits for every
  /// step submitted, and for the copy from the device. Takes as much host memory as the file's size. `notes` are added
  /// to the file's metadata; bytes of their texts that are no UTF-8 are stored as U+FFFD. Throws Error if one of them
  /// has a name that is no UTF-8, or one of the entries that a trainer writes, this one or another: "applied",
  /// "average_decay", "batch", "classes", "deviation", "epoch", "epoch_step", "format", "input", "loss_scale",
  /// "loss_scale_dynamic", "loss_scale_in_rate", "mean", "model", "optimizer", "precision", "ranks", "samples", "seed",
  /// "source_batches", "step", "version".
  Checkpoint checkpoint(const std::map<std::string, std::string>& notes = {});
  /// Writes only weights and states, for use by others: names and axes are PyTorch's if the layers' are, and Hugging
  /// Face's transformers loads the file.
  void save_weights(const std::filesystem::path& path, Weights weights = Weights::current);
  /// Reads weights and states from a safetensors file of F32, F16 or BF16; moments and counters do not change. Of a
  /// file that save() wrote, with any optimizer, it takes these alone. Throws Error, and changes nothing, if the file's
  /// tensors are not the model's, unless `options` allow it. Of several ranks, every one must call it, and all throw
  /// Error if they have read different weights.
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options = {});
  /// Continues from a file that save() wrote. The seed is the file's; precision, optimizer settings, batch size and
  /// training set are this trainer's. If the batch size or the number of samples differs, the epoch in progress
  /// continues at the same fraction, and a Schedule at the same position in epochs. A source without a count goes on
  /// after the batches that all ranks were given, with the next number that is a multiple of the ranks there are now.
  /// If buckets differ, or the batch size of a trainer with buckets, so do the batches of the epoch in progress, some
  /// of whose samples are then drawn twice and others not at all. The optimizers must be of the same kinds and keep the
  /// same states, and both must have averages or neither. Throws Error, and changes nothing, if they do not, or if the
  /// file is of another model or of a newer format.
  ResumePoint load(const std::filesystem::path& path);
  /// Likewise from what checkpoint() returned, of this trainer or another one.
  ResumePoint load(const Checkpoint& checkpoint);

  /// Goes on with `device` in the place of the present one: opened anew after a loss, or any other, of another vendor
  /// too. Starts from the present state if it can still be read, otherwise from the last snapshot
  /// (TrainerOptions::snapshot_every); the result says from which step. Results on one device are bit for bit those of
  /// a run that was never interrupted. The present device's memory is given back first, except for what predictors on
  /// these weights hold; these, what inspect() returned, and what record() recorded, belong to the device before, and
  /// steps must be recorded anew, on the same device too. Totals start anew. Blocks as
  /// compile() and load() do. Throws Error, and changes nothing, if the state cannot be read and there is no snapshot,
  /// or it is of before load(), load_weights() or set_parameter(). Throws Error as compile() does; the trainer then has
  /// no device, all members but this throw, and this may be called again. The graph must not have changed since
  /// compile(), and the training set or source must still be there. Memory belongs to a device: `shared_inputs` has
  /// that of the new one for each of TrainerOptions::shared_inputs. Throws Error, and changes nothing, if it has
  /// others.
  ResumePoint reopen(const Device& device, const std::map<std::string, DeviceBuffer>& shared_inputs = {});
  /// A parameter's or state's current values, in row-major order. Throws Error if there is no such name.
  std::vector<float> parameter(std::string_view name, Weights weights = Weights::current);
  /// Sets the values of a parameter or state, in row-major order. If it is stored in f16, the values are rounded to
  /// nearest. A parameter's average restarts from them; moments and counters do not change. Throws Error, and changes
  /// nothing, if there is no such name or the number of values differs.
  void set_parameter(std::string_view name, std::span<const float> values);

  /// A view of what the step does, costs and computes, valid as long as the trainer; see inspector.h.
  Inspector inspect() const;

  /// The engine's side of it; Workspace is what other programs over the same weights share.
  class Impl;
  struct Workspace;
  const Workspace& workspace() const;

 private:
  struct Origin;
  explicit Trainer(std::unique_ptr<Origin> origin);
  Origin& origin() const;
  Impl& impl() const;

  std::unique_ptr<Origin> origin_;  ///< null where it was moved from
  std::unique_ptr<Impl> impl_;      ///< null where reopen() has failed
};

}  // namespace halfstep
