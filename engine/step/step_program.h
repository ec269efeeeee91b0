#pragma once

#include <halfstep/trainer_options.h>

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "graph/ir.h"
#include "plan/plan.h"
#include "plan/target.h"
#include "state/store_spec.h"
#include "step/share.h"
#include "step/step_inputs.h"

namespace halfstep::step {

/// A value that is in an application's memory.
struct SharedTensor {
  graph::ValueId value = 0;
  std::string name;
  TensorType type;  ///< as the application has it: f32 or u32
  DeviceBuffer memory;
};

/// Where a loss ignores labels: how many rows of a micro-batch count. Micro-batches weigh as much in the means over a
/// step, so that those are the means over its rows, as in one batch of all.
struct CountedRows {
  std::int64_t all = 0;        ///< rows of a micro-batch
  std::vector<bool> means_of;  ///< which of the other outputs are means over these rows, as the gradients are
};

/// A graph in the types it is computed in, with its gradients, and what to do with it.
struct StepGraph {
  graph::Ir ir;
  std::size_t forward_nodes = 0;  ///< nodes of the forward pass; those of the backward pass follow
  /// What it reports, all different: of training and evaluation the loss and then the metrics, which are f32 scalars.
  std::vector<graph::ValueId> outputs;
  /// Where this is there, the last output is that number.
  std::optional<CountedRows> counted;
  /// What it computes into the parameters of the same names: nothing in training and evaluation.
  std::vector<graph::ValueId> stored;
  graph::ValueId loss_scale = 0;                    ///< the loss's gradient
  std::vector<graph::ValueId> parameters;           ///< in the order of their stores
  std::vector<state::Training> training;            ///< of each
  std::vector<Optimizer> optimizers;                ///< that `training` refers to; the first is the trainer's own
  std::vector<graph::ValueId> parameter_gradients;  ///< of those that are not frozen; none in evaluation
  std::vector<graph::ValueId> states;               ///< f32
  std::vector<graph::ValueId> caches;               ///< of a prediction; its updates are theirs
  std::vector<graph::ValueId> inputs;               ///< fed with values, where there are no `samples`
  std::vector<TensorType> input_types;              ///< as the host gives them
  std::optional<SampleInputs> samples;
  std::vector<SharedTensor> read;       ///< the other inputs
  std::optional<SharedTensor> written;  ///< the only output, which is then not reported
};

/// An output as it is reported.
struct ReportedValue {
  TensorType type;
  std::vector<std::uint64_t> places;  ///< in the report, of each micro-batch
  bool of_counted = false;            ///< a mean over StepGraph::counted, which is the last that is reported
};

/// What the flight recorder wants of a step. Patterns are matched with tensors' names; empty ones match none.
struct Watch {
  std::string statistics;  ///< of these
  std::string keep;        ///< these are kept to the end of the step
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
  std::vector<Recorded> inputs;      ///< the operator's, where training may stop
  std::optional<std::uint64_t> row;  ///< where its statistics lie in the report
};

/// Elements of the exchange buffer that are summed together: from first to first + count.
struct ExchangeBucket {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// f32 in the report that the host replaces by what ranks have together, before the step goes on.
struct ExchangedStatistics {
  std::uint64_t place = 0;  ///< in bytes
  std::uint64_t count = 0;
  plan::OverRanks kind = plan::OverRanks::means;
  std::int64_t rows = 0;  ///< of each rank, that moments are of
};

struct StepProgram {
  plan::Plan plan;
  SlotLayout slot;
  std::vector<ReportedValue> reported;  ///< StepGraph::outputs
  std::uint64_t report_bytes = 0;
  std::uint64_t kept_from = 0;  ///< where kept_reports copies of what is before begin in the report; 0: there are none
  std::vector<Watched> watched;
  std::vector<DeviceBuffer> shared;  ///< the buffers that follow those of the table
  /// What ranks exchange, in the order in which it is ready: one for each dispatch that is awaited. Statistics, and
  /// buckets of gradients; with the last of them states.
  std::vector<std::variant<ExchangedStatistics, ExchangeBucket>> exchanged;
  std::uint64_t exchanged_gradients = 0;  ///< elements; those of states follow
  Share share{};                          ///< of this rank, which writes these of ReportedValue::places
};

/// How the parameters and the states of a graph lie in a store that is made for it, and what updates them.
state::StoreLayout layout_of(const StepGraph& graph);

/// The whole training step: feed, forward and backward for each micro-batch of the share, then check, update, rescale.
StepProgram training_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                             const TrainerOptions& options, const Share& share, const Watch& watch = {});

/// Feed and forward only, for what the graph reports or stores.
StepProgram evaluation_program(const plan::Target& target, const StepGraph& graph, const state::StoreLayout& layout,
                               const Precision& precision, Weights read = Weights::current);

}  // namespace halfstep::step
