#pragma once

#include <halfstep/data.h>
#include <halfstep/optimizer.h>
#include <halfstep/precision.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "plan/plan.h"
#include "plan/target.h"
#include "state/store_form.h"

namespace halfstep::step {

/// How bytes become an input.
struct Normalization {
  std::array<float, 4> factor{};
  std::array<float, 4> offset{};
};

/// An input that is fed from a data set, with its labels.
struct SampleInputs {
  graph::ValueId samples;
  graph::ValueId labels;
  Normalization normalization;
  Shape stored;               ///< of a sample in the set
  Augmentation augmentation;  ///< in training
  /// Samples kept in the data buffer (followed by their labels); without, each slot brings its batch's own bytes.
  std::optional<std::uint32_t> resident;
};

/// A graph in the types it is computed in, with its gradients, and what to do with it.
struct StepGraph {
  graph::Ir ir;
  std::size_t forward_nodes = 0;  ///< nodes of the forward pass; those of the backward pass follow
  /// What it reports, all different: of training and evaluation the loss and then the metrics, which are f32 scalars.
  std::vector<graph::ValueId> outputs;
  /// What it computes into the parameters of the same names: nothing in training and evaluation.
  std::vector<graph::ValueId> stored;
  graph::ValueId loss_scale = 0;                    ///< the loss's gradient
  std::vector<graph::ValueId> parameters;           ///< in the order of their stores
  std::vector<state::Training> training;            ///< of each
  std::vector<graph::ValueId> parameter_gradients;  ///< of those that are not frozen; none in evaluation
  std::vector<graph::ValueId> states;               ///< f32
  std::vector<graph::ValueId> inputs;               ///< fed with values, where there are no SampleInputs
  std::vector<TensorType> input_types;              ///< as the host gives them
  std::optional<SampleInputs> samples;
};

/// An input that is fed with values.
struct FedInput {
  std::string name;
  TensorType type;                    ///< as the host gives it
  std::vector<std::uint64_t> places;  ///< in the slot, of each micro-batch
};

/// Where a slot buffer holds what: the batch is that of the whole step, with one micro-batch after the other.
struct SlotLayout {
  std::uint64_t indices = 0;     ///< u32 {batch}, for samples
  std::uint64_t bytes = 0;       ///< a batch's samples, where they are not resident
  std::uint64_t labels = 0;      ///< a batch's labels, likewise
  std::vector<FedInput> inputs;  ///< StepGraph::inputs
  std::uint64_t size = 0;
};

/// An output as it is reported.
struct ReportedValue {
  TensorType type;
  std::vector<std::uint64_t> places;  ///< in the report, of each micro-batch
};

/// What the flight recorder wants of a step. Patterns are matched with tensors' names; empty ones match none.
struct Watch {
  std::string statistics;  ///< of these
  std::string keep;        ///< these keep their memory to the end of the step, with their operators' inputs
  StopOn stop{};           ///< what raises the overflow flag, in tensors with statistics
};

/// A value of the step as the recorder finds it.
struct Recorded {
  std::string name;
  TensorType type;
  plan::TensorId memory = 0;  ///< the tensor in whose memory it is
};

/// A tensor that is watched, in the order they are made in.
struct Watched {
  Recorded tensor;
  std::uint32_t micro_batch = 0;     ///< of the step
  std::string op;                    ///< the label of the operator that made it
  bool divides = false;              ///< whether that divides
  StopOn stop{};                     ///< what in this tensor training stops at
  std::vector<Recorded> inputs;      ///< the operator's, where the tensor is kept
  std::optional<std::uint64_t> row;  ///< where its statistics lie in the report
};

struct StepProgram {
  plan::Plan plan;
  SlotLayout slot;
  std::vector<ReportedValue> reported;  ///< StepGraph::outputs
  std::uint64_t report_bytes = 0;
  std::vector<Watched> watched;
};

/// Bytes from the start of a data buffer to its labels.
std::uint64_t label_offset(std::uint64_t sample_bytes, std::uint64_t samples);

/// How the parameters and the states of a graph lie in a store that is made for it.
state::StoreLayout layout_of(const StepGraph& graph);

/// What a training step is beside its graph.
struct StepOptions {
  Precision precision{};
  Optimizer optimizer = Sgd{};
  float clip_norm = 0;           ///< 0: gradients are not clipped
  std::uint32_t accumulate = 1;  ///< micro-batches in a step, each as large as the graph's batch
  float average_decay = 0;       ///< 0: no averages of weights are kept
};

/// The whole training step: feed, forward and backward for each micro-batch, then check, update, rescale.
StepProgram training_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                             const StepOptions& options, const Watch& watch = {});

/// Feed and forward only, for what the graph reports or stores.
StepProgram evaluation_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                               const Precision& precision, Weights read = Weights::current);

}  // namespace halfstep::step
