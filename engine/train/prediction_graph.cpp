#include "train/prediction_graph.h"

#include <halfstep/error.h>
#include <halfstep/ops.h>

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "passes/backward.h"
#include "passes/inference.h"
#include "passes/precision.h"
#include "passes/weight_nodes.h"

namespace halfstep::train {
namespace {

/// Without the nodes that neither `output` nor the next value of a cache depends on: losses and metrics.
graph::Ir only_for(const graph::Ir& ir, graph::ValueId output) {
  graph::Ir result = ir;
  result.nodes.clear();
  std::erase_if(result.updates,
                [&](const graph::Update& update) { return ir.values[update.state].origin != graph::Origin::cache; });
  std::vector<graph::ValueId> wanted{output};
  for (const graph::Update& update : result.updates) wanted.push_back(update.next);
  for (const graph::NodeId node : passes::needed_nodes(ir, wanted)) {
    for (const graph::ValueId value : ir.nodes[node].outputs) {
      result.values[value].producer = static_cast<graph::NodeId>(result.nodes.size());
    }
    result.nodes.push_back(ir.nodes[node]);
  }
  return result;
}

/// Values of one origin that a node takes.
std::vector<graph::ValueId> read_values(const graph::Ir& ir, graph::Origin origin) {
  std::set<graph::ValueId> found;
  for (const graph::Node& node : ir.nodes) {
    for (const graph::ValueId input : node.inputs) {
      if (ir.values[input].origin == origin) found.insert(input);
    }
  }
  return {found.begin(), found.end()};
}

/// Throws Error unless the next value of every cache can be computed in place: by an operator that can, which is the
/// only one to read the value before.
void check_caches(const graph::Ir& ir) {
  for (const graph::Update& update : ir.updates) {
    const graph::Value& next = ir.values[update.next];
    const auto reads = [&](const graph::Node& node) { return std::ranges::count(node.inputs, update.state); };
    std::ptrdiff_t readers = 0;
    for (const graph::Node& node : ir.nodes) readers += reads(node);
    if (next.origin == graph::Origin::node && readers == 1) {
      const graph::Node& node = ir.nodes[next.producer];
      const bool first = node.inputs.front() == update.state && node.outputs.front() == update.next;
      if (first && node.op->works_in_place()) continue;
    }
    fail("cache",
         fmt::format("expected the next value of '{}' from store_rows, its only reader, got '{}'",
                     ir.values[update.state].name, next.name),
         "read the result of store_rows");
  }
}

void add_weights(step::StepGraph& graph) {
  graph.parameters = read_values(graph.ir, graph::Origin::parameter);
  graph.training.assign(graph.parameters.size(), {.frozen = true});
  graph.states = read_values(graph.ir, graph::Origin::state);
}

}  // namespace

step::StepGraph prediction_graph(const Graph& written, Tensor output, const Precision& precision) {
  graph::expect_value("predictor", "an output", written.ir(), output);
  if (!is_floating(output.dtype())) {
    fail("predictor", fmt::format("expected an output of floating numbers, got {}", to_string(output.type())));
  }
  const passes::LoweredPrecision lowered =
      passes::for_inference(passes::apply_precision(written.ir(), precision), [](const graph::Node&) { return true; });
  graph::ValueId wanted = lowered.value.at(output.id());
  step::StepGraph result;
  result.ir = only_for(lowered.ir, wanted);
  // What is reported has a place of its own, so an operator must compute it.
  const bool cached = std::ranges::find(result.ir.updates, wanted, &graph::Update::next) != result.ir.updates.end();
  if (cached || result.ir.values[wanted].origin != graph::Origin::node) {
    wanted = scale(result.ir.tensor(wanted), 1.0F).id();
  }
  check_caches(result.ir);
  result.outputs = {wanted};
  result.forward_nodes = result.ir.nodes.size();
  const std::vector<graph::ValueId> read = read_values(result.ir, graph::Origin::input);
  for (const graph::ValueId input : written.ir().of(graph::Origin::input)) {
    const graph::ValueId now = lowered.value.at(input);
    if (!std::ranges::binary_search(read, now)) continue;
    result.inputs.push_back(now);
    result.input_types.push_back(written.ir().values[input].type);
  }
  result.caches = read_values(result.ir, graph::Origin::cache);
  add_weights(result);
  return result;
}

FoldedPrediction fold(const step::StepGraph& prediction, const Precision& precision) {
  passes::WeightSplit split = passes::split_at_weights(prediction.ir, precision.parameters, prediction.outputs);
  FoldedPrediction folded{.weights = {}, .rest = prediction};
  folded.weights.ir = std::move(split.weights);
  folded.weights.ir.updates.clear();
  folded.weights.forward_nodes = folded.weights.ir.nodes.size();
  folded.weights.stored = std::move(split.made);
  folded.rest.ir = std::move(split.rest);
  folded.rest.forward_nodes = folded.rest.ir.nodes.size();
  add_weights(folded.weights);
  add_weights(folded.rest);
  return folded;
}

}  // namespace halfstep::train
