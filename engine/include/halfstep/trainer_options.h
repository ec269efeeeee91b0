#pragma once

#include <halfstep/data.h>
#include <halfstep/exchange.h>
#include <halfstep/guest.h>
#include <halfstep/optimizer.h>
#include <halfstep/precision.h>
#include <halfstep/tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace halfstep {

class Graph;

/// How one field of a data set enters one input. Which conversion it is follows from the types:
/// - u8 to f32: (byte / 255 - mean) / stddev. Images {height, width, channels} are resized to the input's height and
///   width if they differ, bilinearly (with a wider triangle filter when shrinking, so that no pixel is skipped). A
///   single channel is copied to all channels of the input.
/// - f32 to f32: (x - mean) / stddev. The precision policy decides what narrower type the input is then cast to.
/// - u8, u16 and u32 to u32: the integers as they are, without mean and stddev.
struct InputFeed {
  Tensor input{};                ///< {batch, sample shape...}, of f32 or u32
  std::string field{};           ///< its name in the data set; empty: the input's name
  std::vector<float> mean{0};    ///< one value, or one per channel of the last axis (at most 4 for u8)
  std::vector<float> stddev{1};  ///< the std, likewise
};

/// How the samples of a Dataset or a Source enter a graph. Every input must be fed. The device gathers and converts;
/// all inputs have one batch size. Of images with labels, `samples` and `labels` say all, of a graph with no other
/// input `samples` alone; other fields are fed by `inputs`, with these two or without.
struct Feed {
  Tensor samples{};              ///< an f32 input, fed from the field "samples"
  Tensor labels{};               ///< a u32 input, fed from the field "labels"
  std::vector<float> mean{0};    ///< of `samples`; see InputFeed
  std::vector<float> stddev{1};  ///< likewise
  Augmentation augmentation{};   ///< of `samples` in training steps; requires images of u8
  std::vector<InputFeed> inputs{};
};

/// A graph for the samples of at most `length`; see Buckets.
struct HALFSTEP_API Bucket {
  std::int64_t length = 0;
  const Graph* graph = nullptr;             ///< need not outlive Trainer::compile
  Tensor loss{};                            ///< of `graph`, as are the metrics
  std::map<std::string, Tensor> metrics{};  ///< of the same names as TrainerOptions::metrics
  Feed feed{};                              ///< as TrainerOptions::feed, for the inputs of `graph`
};

/// Training at several lengths, so that short samples are not padded to the longest. A bucket is a range of lengths; it
/// has a graph of its own, the same model with shorter inputs. Each step takes a batch of one bucket, in the order of
/// BatchSampler::training with buckets, and runs that bucket's graph. All share weights, and memory for activations.
///
/// Samples are stored at the longest length. Where an input {batch, length, ...} is fed from a field that is longer
/// along its first axis, the first `length` are read. Results are those of padded batches if the model ignores what
/// lies beyond a sample's length (attention and means that know the lengths do).
struct HALFSTEP_API Buckets {
  std::string field = "lengths";  ///< of integers in every set: each sample's length
  std::int64_t longest = 0;       ///< of the trainer's own graph; no sample may be longer
  std::vector<Bucket> shorter{};  ///< lengths increase, and are below `longest`
};

/// The options of a trainer. Only `loss` must be set.
struct HALFSTEP_API TrainerOptions {
  /// A scalar. Parameters that it does not depend on are not trained: they keep their values, even with weight decay.
  Tensor loss{};
  std::map<std::string, Tensor> metrics{};  ///< scalars reported together with the loss
  Optimizer optimizer = Sgd{};              ///< of the parameters that no group has an optimizer for
  std::vector<ParameterGroup> groups{};     ///< the first group whose pattern matches a parameter's name applies
  float clip_norm = 0;                      ///< gradients are scaled down to this global norm; 0: no clipping
  /// Whether StepReport::gradient_norm is computed where nothing is clipped either, by reading all gradients once more.
  bool gradient_norm = false;
  /// Micro-batches per step, 1 to 1,024, each as large as the graph's batch. The mean of their gradients, summed in f32
  /// and then rounded like gradients, makes one update. This needs the memory of one micro-batch and a second copy of
  /// the gradients. Where the loss ignores labels, a micro-batch counts as much as the part of its rows that do:
  /// gradients, the loss and the metrics of the same rows are means over all rows of the step, as in one batch of all.
  /// In a loss that is a sum of several, of other rows each or one of inputs without labels, and in other metrics,
  /// micro-batches count alike. A step of several micro-batches in which no label counts at all has a loss and
  /// gradients of 0, also of what such a loss has besides, as a penalty on weights. If a gradient overflows in any of
  /// them, the update is skipped. Each micro-batch draws its own noise. Batch norm uses each micro-batch's own
  /// statistics, and moves its running statistics once per micro-batch.
  std::int64_t accumulate = 1;
  /// Other processes that train the same model, each with a part of every batch. `accumulate`, the graph's batch and
  /// everything else here that decides on the numbers must be the same on each; compile() compares them, and throws an
  /// Error that names the first difference. `classes`, `log`, `cancel`, `trace` and the limits of memory may differ. Of
  /// a Source, its name, count and fields are compared, not its samples. Functions of a trainer that compile, load,
  /// step or evaluate must then be called by every rank. Several ranks have no Precision::stop_on or snapshot_every,
  /// and no run_for(), record() or reopen(); shared inputs are each rank's own.
  Ranks ranks{};
  /// Keeps averages of the trained weights in f32. Every update sets average = ema_decay average + (1 -
  /// ema_decay) weight, starting from the initial weights. 0: no averages. load_weights() sets the averages to the
  /// loaded values. The running statistics of norms are not averaged again.
  float ema_decay = 0;
  /// After every update, trained weights above this are set to it, and those below its negative to that: Arjovsky et
  /// al. 2017, for critics. 0: no limit. A tensor whose update is skipped stays as it was.
  float weight_limit = 0;
  /// Scopes, by a pattern of their paths ("layer?/?" for the blocks of a ResNet), whose operators' results are not kept
  /// for the backward pass, but recomputed there from the inputs of the scope. The result is bit-identical, with less
  /// memory and more time. Inspector::plan() prints both.
  std::string recompute{};
  /// Whether the weight decay of an optimizer also applies to parameters of one axis: norms and biases. That of a group
  /// applies to all its parameters.
  bool decay_vectors = true;
  Precision precision = Precision::mixed();
  std::uint64_t seed = 42;
  // Stored in checkpoints; bytes that are no UTF-8 are stored as U+FFFD.
  std::string model{};
  std::vector<std::string> classes{};  ///< their names
  std::optional<Feed> feed{};          ///< how inputs are filled from data sets
  /// With `feed` and a training set: graphs for shorter samples. They must have the parameters and states of the
  /// trainer's graph, created in the same order, and its batch size. Inspector shows the trainer's own graph.
  std::optional<Buckets> buckets{};
  /// With `feed`: the samples of training steps. Must outlive the trainer and not change.
  const Dataset* training_set = nullptr;
  /// Likewise, in the place of a training set.
  const Source* source = nullptr;
  /// Inputs that steps read from an application's memory, by their names, in the place of values; not with `feed`.
  /// Where these are all inputs, step() and run_for() take no values.
  std::map<std::string, DeviceBuffer> shared_inputs{};
  /// Called with each decision of compile() and reopen(), by their thread, one line each: operators that compute in f16
  /// instead of f32, hyperparameters that f16 cannot represent, parameters that the loss does not depend on. What this
  /// function and `cancel` refer to must outlive the trainer.
  std::function<void(const std::string&)> log{};
  /// Called by compile() and reopen(), by their thread, before each kernel that is compiled; true ends them with
  /// ErrorCode::cancelled, and an exception of its own likewise. One kernel takes a driver up to a second or two.
  /// compile() leaves nothing behind but kernels in the cache folder; after reopen() see there.
  std::function<bool()> cancel{};
  /// A pattern of names: Inspector::trace() can read the matching tensors after each step. They take memory of their
  /// own.
  std::string trace{};
  /// Steps between snapshots in host memory, from which Trainer::reopen() goes on after the device was lost; 0: none.
  /// Each takes the time and the host memory of Trainer::checkpoint(). The newest replaces the one before.
  std::int64_t snapshot_every = 0;
  /// Bytes of device memory that the training may take; 0: what the device has. compile() throws Error, before it
  /// allocates any, that says what takes how much and what batch fits; the one that takes a model makes it fit.
  std::uint64_t memory_limit = 0;
  /// Bytes of the training set that the device may keep; 0: what it allows, and half of `memory_limit`.
  std::uint64_t resident_limit = 0;
};

}  // namespace halfstep
