#pragma once

#include <halfstep/checkpoint.h>
#include <halfstep/data.h>
#include <halfstep/device.h>
#include <halfstep/graph.h>
#include <halfstep/optimizer.h>
#include <halfstep/precision.h>
#include <halfstep/recorder.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace halfstep {

/// How the samples of a Dataset enter a graph: its bytes are gathered, normalised to (byte / 255 - mean) / deviation
/// and cast to the input's type on the device. Images {height, width, channels} of another height or width than the
/// input's are resized there too, bilinearly (with a wider triangle where they become smaller, so that no pixel is left
/// out); a single channel goes to all of the input's.
struct Feed {
  Tensor samples{};                 ///< an f32 input {batch, sample shape...}
  Tensor labels{};                  ///< a u32 input {batch}
  std::vector<float> mean{0};       ///< one value, or one a channel (at most 4)
  std::vector<float> deviation{1};  ///< likewise
  Augmentation augmentation{};      ///< in training steps; asks for images
};

/// What a trainer is compiled from, given at once or set member by member. All but `loss` may stay as they are.
struct HALFSTEP_API TrainerOptions {
  /// A scalar. Parameters that it does not depend on are not trained: they keep their values, weight decay or not.
  Tensor loss{};
  std::map<std::string, Tensor> metrics{};  ///< scalars reported beside it
  Optimizer optimizer = Sgd{};
  std::vector<ParameterGroup> groups{};  ///< for each parameter the first whose pattern matches its name
  float clip_norm = 0;                   ///< gradients are scaled down to this norm over all of them; 0: they are not
  /// Micro-batches in a step, each as large as the graph's batch: their gradients' mean, summed up in f32 and then
  /// rounded as gradients are, makes one update, in the memory of one micro-batch and another store of gradients. Loss
  /// and metrics are means over all. A gradient that overflows in any of them skips the update. Noise is another in
  /// each; batch norm takes each one's statistics by itself, and moves its running ones once for each.
  std::int64_t accumulate = 1;
  /// With every update the averages of the trained weights, kept in f32, move towards these: average = average_decay
  /// average + (1 - average_decay) weight, from the first weights on. 0: there are none. What is loaded by
  /// load_weights() is its own average. Running statistics are averages of their own.
  float average_decay = 0;
  /// Scopes, by a pattern of their paths ("layer?/?" for the blocks of a ResNet), whose operators' results are not kept
  /// for the backward pass, but computed again there, from what enters the scope: to the same bits, in less memory and
  /// more time. Trainer::plan() has both.
  std::string recompute{};
  bool decay_vectors = true;  ///< whether the optimizer's weight decay is for parameters of one axis too:
                              ///< norms and biases
  Precision precision = Precision::mixed();
  std::uint64_t seed = 42;
  std::string model{};                 ///< its name, for checkpoints
  std::vector<std::string> classes{};  ///< their names, likewise
  std::optional<Feed> feed{};          ///< where the inputs come from Datasets
  /// With `feed`: what training steps draw from. Must outlive the trainer, and stay as it is.
  const Dataset* training_set = nullptr;
  /// Told what compile() decides, a line each: operators that work in f16 instead of f32, hyperparameters that f16
  /// would not hold, parameters that the loss does not depend on.
  std::function<void(const std::string&)> log{};
  /// Tensors of each step, by a pattern of their names, that trace() can read after it. They take memory of their own.
  std::string trace{};
  std::uint64_t resident_limit = 0;  ///< bytes of the training set kept on the device; 0: what the device allows
};

/// What one finished step did.
struct StepReport {
  std::uint64_t step = 0;      ///< steps attempted so far, this one included
  std::uint64_t applied = 0;   ///< updates made so far
  std::uint64_t skipped = 0;   ///< steps skipped so far because a gradient was not finite
  std::uint64_t left_out = 0;  ///< updates of single tensors left out of the others (Precision::gradient_scales)
  float loss = 0;              ///< unscaled
  float loss_scale = 1;        ///< in this step
  float rate = 0;              ///< in this step
  float clip = 1;              ///< what this step's gradients were multiplied by to keep to clip_norm
  bool overflowed = false;     ///< whether this step was skipped
  std::map<std::string, float> metrics{};
};

/// Sums over the steps finished since the last call of Trainer::take_totals.
struct StepTotals {
  std::uint64_t steps = 0;
  double mean_loss = 0;  ///< unscaled; over all steps whose loss was finite
  std::map<std::string, double> mean_metrics{};
};

struct Evaluation {
  std::int64_t samples = 0;
  double loss = 0;
  std::map<std::string, double> metrics{};
};

/// What a compiled step is made of.
struct PlanSummary {
  std::int64_t parameters = 0;  ///< trainable scalars
  std::uint64_t dispatches = 0;
  std::uint64_t barriers = 0;
  std::uint64_t arena_bytes = 0;           ///< activations, gradients on the way, workspaces: the peak
  std::uint64_t arena_bytes_unshared = 0;  ///< the same if no memory were used twice
  std::uint64_t arena_bytes_kept = 0;      ///< the same if nothing were computed again (TrainerOptions::recompute)
  double flops = 0;                        ///< of products; multiply-adds counted as two
  double flops_again = 0;                  ///< those among them that compute again what was not kept
  std::uint64_t bytes_moved = 0;           ///< of tensors that dispatches read and write
  std::uint64_t bytes_moved_again = 0;     ///< likewise
  std::uint64_t weight_bytes = 0;          ///< weights, with masters and f16 copies
  std::uint64_t gradient_bytes = 0;        ///< with their sums over micro-batches
  std::uint64_t optimizer_bytes = 0;
  std::uint64_t average_bytes = 0;  ///< of weights, with what evaluation reads of them
  std::uint64_t data_bytes = 0;     ///< of the training set, where it is kept on the device
  std::uint64_t peak_bytes = 0;     ///< all of it, but for what the recorder takes
};

/// Host work of the steps so far, and what it waited for.
struct HostCosts {
  std::uint64_t steps = 0;
  double microseconds_per_step = 0;   ///< inside step(), waiting for a free slot apart (median)
  std::uint64_t waits_for_slot = 0;   ///< times that step() found both slots busy
  std::uint64_t waits_for_batch = 0;  ///< times that step() found the next batch of a set in host memory not gathered
  std::uint64_t waits_elsewhere = 0;  ///< fence waits of any other kind inside step(): always 0
};

/// When a dispatch ran, in microseconds on the device's clock since its step began.
struct Interval {
  double begin = 0;
  double end = 0;
};

/// What one dispatch of the step does and takes; see Trainer::profile.
struct DispatchCost {
  std::string label;           ///< the operator, or the stage of the step: "conv1/conv2d", "update"
  std::string shader;          ///< the kernel's variant
  double milliseconds = 0;     ///< median
  std::vector<Interval> runs;  ///< of every step, in order
  double flops = 0;            ///< multiply-adds counted as two; 0 where it moves data only
  std::uint64_t bytes = 0;     ///< of the tensors it reads and writes
};

/// Trains one graph. Compiling records the whole training step once; step() submits that recording and returns. To be
/// used by one thread at a time. Every member that reads or changes what is trained waits for all steps submitted
/// before it; step(), report() and take_records() do not. All that use the device throw Error where it is lost or has
/// no memory left.
class HALFSTEP_API Trainer {
 public:
  /// Throws Error for anything that cannot be trained as asked: options, shapes, the training set and the device's
  /// limits are checked here, so that step() throws only what it says. Blocks while it compiles and measures kernels,
  /// and while the device takes the training set, which may be for seconds.
  static Trainer compile(const Device& device, const Graph& graph, TrainerOptions options);
  ~Trainer();
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;

  /// Submits one step on the next batch of the training set, in the order that BatchSampler::training draws from the
  /// seed, and returns without waiting for it. Blocks until the step before last has finished; where the set is not
  /// kept on the device (TrainerOptions::resident_limit), until a thread of the trainer's has gathered the batch; and
  /// with Precision::stop_on until this step has finished. HostCosts counts the first two.
  /// Throws Error where there is no training set; where a step before it overflowed with a dynamic loss scale at its
  /// floor, saying which gradients did; and, with Precision::stop_on, where this step is stopped: it then has changed
  /// nothing, and the next call takes the same batch again.
  void step();
  /// The same on values for every input: for all micro-batches, one after the other. They are copied. Throws Error as
  /// well, with nothing submitted, where an input is missing, unknown, or of another type or number of values.
  void step(const std::map<std::string, Values>& inputs);

  /// The newest finished step; does not wait.
  StepReport report();
  /// Waits for every step submitted so far.
  void finish();
  /// finish(), then the totals since the last call.
  StepTotals take_totals();

  /// Loss and metrics over a whole set with the present weights, or their averages; every sample counts once. Needs a
  /// Feed. The samples are as large as the training set's, or as the input where there is none. Throws Error where they
  /// are not or the set is none (Dataset::check), and, as do the others that take Weights, where averages are asked for
  /// and there are none.
  Evaluation evaluate(const Dataset& set, Weights weights = Weights::current);

  /// Writes weights, their averages, optimizer moments, loss scale, counters and seed as a safetensors file, whole or
  /// not at all. Waits for every step submitted, and for the disk.
  void save(const std::filesystem::path& path);
  /// What save() would write, for writing it on another thread while training goes on. Waits for every step submitted,
  /// and for the copy off the device; takes as much host memory as the file's size. `notes` go to the file's metadata.
  /// Throws Error where one of them has the name of an entry that the trainer writes.
  Checkpoint checkpoint(const std::map<std::string, std::string>& notes = {});
  /// Writes weights and states alone, for others to use: names and axes are PyTorch's where the layers' are.
  void save_weights(const std::filesystem::path& path, Weights weights = Weights::current);
  /// Takes weights and states from a safetensors file of F32, F16 or BF16; moments and counters stay as they are.
  /// Throws Error, and changes nothing, where the file's tensors are not the model's, unless `options` allow it.
  LoadReport load_weights(const std::filesystem::path& path, const LoadOptions& options = {});
  /// Continues from a file that save() wrote. The file's seed counts; precision, optimizer settings, batch size and
  /// training set are this trainer's. With another batch size or number of samples, the epoch in progress goes on at
  /// the same fraction of it. Throws Error, and changes nothing, where the file is another model's, or of a newer
  /// format.
  ResumePoint load(const std::filesystem::path& path);
  /// A parameter's or state's present values, in the order of its shape.
  std::vector<float> parameter(std::string_view name, Weights weights = Weights::current);
  /// Gives a parameter or state new values, in the order of its shape. What is kept of it in f16 is rounded to nearest;
  /// a parameter's average begins anew from them; moments and counters stay as they are. Throws Error, and changes
  /// nothing, where there is no such name or the number of values is another.
  void set_parameter(std::string_view name, std::span<const float> values);

  /// Has the flight recorder look at every tensor whose name matches `pattern`, in one step out of `every`: on the
  /// device, and read when the step's report is, so that no step waits. "*gradient" are the gradients of parameters. An
  /// empty pattern ends it. Throws Error where no tensor matches, or `every` is 0.
  void watch(std::string_view pattern, std::uint64_t every = 1);
  /// What the recorder has seen in steps that have finished, oldest first, since the last call.
  std::vector<TensorStatistics> take_records();
  /// A tensor of the last step (of its last micro-batch), in the order of its shape: one that TrainerOptions::trace
  /// names. Gradients are times the loss scale, but not times one of their own. Throws Error for others.
  std::vector<float> trace(std::string_view name);

  const PlanSummary& summary() const;
  HostCosts host_costs() const;
  /// Takes `steps` further training steps, as step() would, from a recording with a timestamp after every dispatch, and
  /// waits for each. Returns every dispatch in order. The timestamps keep dispatches from overlapping, so the sum may
  /// be more than an ordinary step takes. Throws Error unless `steps` is positive and the queue has timestamps.
  std::vector<DispatchCost> profile(std::int64_t steps);
  /// The same for steps on values for every input.
  std::vector<DispatchCost> profile(std::int64_t steps, const std::map<std::string, Values>& inputs);
  /// Every dispatch in order, with the memory it uses and the barriers: for people.
  std::string plan() const;
  /// Operator by operator, what it stores, computes and accumulates in, and why: for people.
  std::string explain() const;

  /// The engine's side of it: what other programs over the same weights share.
  struct Workspace;
  const Workspace& workspace() const;

 private:
  class Impl;
  explicit Trainer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace halfstep
