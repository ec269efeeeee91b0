#include "train/step_graph.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "ops/loss/row_loss.h"
#include "optim/check.h"
#include "optim/rule.h"
#include "passes/backward.h"
#include "passes/inference.h"
#include "passes/precision.h"
#include "passes/recompute.h"
#include "train/feed.h"
#include "train/labels.h"
#include "train/parameter_groups.h"
#include "train/shared_memory.h"

namespace halfstep::train {
namespace {

/// Values that the step puts in a place of their own: each must be computed by an operator, and be one value only.
class Placeable {
 public:
  explicit Placeable(graph::Ir& ir) : ir_(ir) {}

  graph::ValueId operator()(graph::ValueId value) {
    const bool computed = ir_.values[value].origin == graph::Origin::node;
    if (computed && taken_.insert(value).second) return value;
    const graph::ValueId copy = scale(ir_.tensor(value), 1.0F).id();
    taken_.insert(copy);
    return copy;
  }

 private:
  graph::Ir& ir_;
  std::set<graph::ValueId> taken_;
};

/// Whether a value can be stored times a scale: it is computed, and nothing reads it.
bool is_scalable(const graph::Ir& ir, graph::ValueId value) {
  const auto reads = [&](const graph::Node& node) {
    return std::ranges::find(node.inputs, value) != node.inputs.end();
  };
  if (std::ranges::any_of(ir.nodes, reads)) return false;
  const graph::Node& producer = ir.nodes[ir.values[value].producer];
  std::vector<TensorType> inputs;
  for (const graph::ValueId input : producer.inputs) inputs.push_back(ir.values[input].type);
  return !producer.op->moves_bits(inputs) && !producer.op->reads_results();
}

/// Has micro-batches count by their rows that do, where a label may be ignored.
void count_rows(step::StepGraph& result, Placeable& placeable) {
  const std::optional<Judged> loss = judged(result.ir, result.outputs.front());
  if (!loss || !loss->statistics) return;
  step::CountedRows counted{.all = loss->rows, .means_of = {}};
  for (const graph::ValueId output : result.outputs) {
    const std::optional<Judged> found = judged(result.ir, output);
    counted.means_of.push_back(found && found->has_rows_of(*loss));
  }
  result.outputs.push_back(placeable(ops::rows_that_count(result.ir.tensor(*loss->statistics)).id()));
  result.counted = std::move(counted);
}

/// Has every parameter's gradient computed in the type it is stored in, in a place of its own.
void add_gradients(step::StepGraph& result, Placeable& placeable, std::span<const graph::ValueId> parameters,
                   const Precision& precision) {
  const DType stored = precision.parameters;
  const bool scaled = precision.gradient_scales == GradientScales::per_tensor;
  for (const graph::ValueId gradient :
       passes::add_backward(result.ir, result.outputs.front(), result.loss_scale, parameters)) {
    const Tensor tensor = result.ir.tensor(gradient);
    // What the forward pass computes has been computed before gradients have their places.
    const graph::Value& value = result.ir.values[gradient];
    const bool forward = value.origin == graph::Origin::node && value.producer < result.forward_nodes;
    const Tensor own = forward ? scale(tensor, 1.0F) : tensor;
    result.parameter_gradients.push_back(placeable(own.dtype() == stored ? own.id() : cast(own, stored).id()));
  }
  if (!scaled) return;
  for (graph::ValueId& placed : result.parameter_gradients) {  // all have their places: one may be read for another's
    if (!is_scalable(result.ir, placed)) placed = scale(result.ir.tensor(placed), 1.0F).id();
  }
}

/// A scalar of the graph as written, in f32.
graph::ValueId scalar(step::StepGraph& result, const passes::LoweredPrecision& lowered, std::string_view what,
                      Tensor written) {
  if (written.rank() != 0) {
    fail("trainer", fmt::format("expected {} to be a scalar, got {}", what, to_string(written.type())),
         "mean() makes one");
  }
  const Tensor now = result.ir.tensor(lowered.value.at(written.id()));
  return now.dtype() == DType::f32 ? now.id() : cast(now, DType::f32).id();
}

void add_inputs(step::StepGraph& result, const graph::Ir& written, const passes::LoweredPrecision& lowered,
                const TrainerOptions& options, std::int64_t length) {
  std::vector<graph::ValueId> inputs = written.of(graph::Origin::input);
  if (options.feed) {
    if (!options.shared_inputs.empty()) {
      fail("trainer", "expected a feed or shared inputs, got both", "a feed says how all inputs are filled");
    }
    result.samples = sample_inputs(*options.feed, written, TrainingData(options), length);
    for (step::FieldInput& fed : result.samples->fields) {
      std::erase(inputs, fed.input);
      fed.input = lowered.value.at(fed.input);
    }
    if (inputs.empty()) return;
    fail("feed", fmt::format("expected every input to be fed, got '{}' beside those of the feed",
                             written.values[inputs.front()].name));
  }
  for (const graph::ValueId input : inputs) {
    result.inputs.push_back(lowered.value.at(input));
    result.input_types.push_back(written.values[input].type);
  }
  share_inputs("trainer", result, options.shared_inputs, options.accumulate);
}

/// Names the parameters that are not trained because the loss does not depend on them.
void note_unreached(const step::StepGraph& result, const TrainerOptions& options) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < result.parameters.size(); ++i) {
    if (!result.training[i].unreached) continue;
    names.push_back(fmt::format("'{}'", result.ir.values[result.parameters[i]].name));
  }
  if (names.empty()) return;
  options.log(fmt::format("not trained, since the loss does not depend on them: {}", fmt::join(names, ", ")));
}

/// Loss, metrics and updates of a graph that precision was applied to, with what feeds them.
void add_forward(step::StepGraph& result, Placeable& placeable, const passes::LoweredPrecision& lowered,
                 const Graph& graph, const TrainerOptions& options, std::int64_t length) {
  result.outputs.push_back(placeable(scalar(result, lowered, "the loss", options.loss)));
  for (const auto& [name, metric] : options.metrics) {
    result.outputs.push_back(placeable(scalar(result, lowered, fmt::format("metric '{}'", name), metric)));
  }
  for (graph::Update& update : result.ir.updates) update.next = placeable(update.next);
  add_inputs(result, graph.ir(), lowered, options, length);
  result.parameters = result.ir.of(graph::Origin::parameter);
  if (result.parameters.empty()) fail("trainer", "expected a model with parameters, got none");
  group_parameters(result, graph.ir(), options);
  result.states = result.ir.of(graph::Origin::state);
}

}  // namespace

void check_values(const Graph& graph, const TrainerOptions& options) {
  graph::expect_value("trainer", "a loss", graph.ir(), options.loss, "set TrainerOptions::loss");
  for (const auto& [name, metric] : options.metrics) {
    graph::expect_value("trainer", fmt::format("a value for the metric '{}'", name), graph.ir(), metric);
  }
  if (const std::vector<graph::ValueId> caches = graph.ir().of(graph::Origin::cache); !caches.empty()) {
    fail("trainer", fmt::format("expected a graph without caches, got '{}'", graph.ir().values[caches.front()].name),
         "a Predictor keeps them, from run to run");
  }
  if (options.feed) check_feed_values(*options.feed, graph.ir());
  if (const Dataset* set = options.training_set; set != nullptr) {
    set->check();
    if (set->count == 0)
      fail("trainer", fmt::format("expected a training set with samples, got none in '{}'", set->name));
  }
  if (options.source == nullptr) return;
  if (options.training_set != nullptr) fail("trainer", "expected a training set or a source, got both");
  options.source->check();
}

void check_options(const TrainerOptions& options) {
  check_groups(options);
  if (options.accumulate < 1 || options.accumulate > most_micro_batches) {
    fail("trainer",
         fmt::format("expected 1 to {} micro-batches to accumulate, got {}", most_micro_batches, options.accumulate));
  }
  if (options.snapshot_every < 0) {
    fail("trainer", fmt::format("expected 0 or more steps between snapshots, got {}", options.snapshot_every));
  }
  std::vector<Optimizer> optimizers{options.optimizer};
  for (const ParameterGroup& group : options.groups) {
    if (group.optimizer) optimizers.push_back(*group.optimizer);
  }
  for (const Optimizer& optimizer : optimizers) optim::check(*optimizer);
  check_precision(options.precision, optimizers);
}

step::StepGraph training_graph(const Graph& graph, const TrainerOptions& options, std::int64_t length) {
  passes::check_names(graph.ir(), options.precision);
  const passes::LoweredPrecision whole = passes::apply_precision(graph.ir(), options.precision);
  if (options.log) {
    for (const std::string& line : whole.reduced) options.log("reduced precision: " + line);
  }
  passes::LoweredPrecision lowered =
      passes::for_inference(whole, [&](const graph::Node& node) { return is_frozen(whole.ir, node, options); });
  step::StepGraph result;
  result.ir = std::move(lowered.ir);
  Placeable placeable(result.ir);
  add_forward(result, placeable, lowered, graph, options, length);
  if (options.accumulate > 1 || options.ranks.exchange_gradients()) count_rows(result, placeable);
  const auto trained = std::ranges::count(result.training, false, &state::Training::frozen);
  const std::span parameters = std::span(result.parameters).first(static_cast<std::size_t>(trained));
  if (options.log) note_unreached(result, options);
  result.forward_nodes = result.ir.nodes.size();
  result.loss_scale = result.ir.add_value({{DType::f32, {}}, "loss_scale", graph::Origin::state, 0, {}});
  add_gradients(result, placeable, parameters, options.precision);
  if (!options.recompute.empty()) {
    std::vector<graph::ValueId> wanted = result.outputs;
    for (const graph::Update& update : result.ir.updates) wanted.push_back(update.next);
    passes::recompute(result.ir, result.forward_nodes, options.recompute, wanted);
  }
  return result;
}

step::StepGraph evaluation_graph(const Graph& graph, const TrainerOptions& options, std::int64_t length) {
  passes::LoweredPrecision lowered = passes::for_inference(passes::apply_precision(graph.ir(), options.precision),
                                                           [](const graph::Node&) { return true; });
  lowered.ir.updates.clear();
  step::StepGraph result;
  result.ir = std::move(lowered.ir);
  Placeable placeable(result.ir);
  add_forward(result, placeable, lowered, graph, options, length);
  return result;
}

}  // namespace halfstep::train
