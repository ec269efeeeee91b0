#include "passes/weight_nodes.h"

#include <fmt/format.h>

#include <algorithm>

namespace halfstep::passes {

using graph::Ir;
using graph::Node;
using graph::NodeId;
using graph::Origin;
using graph::Value;
using graph::ValueId;

namespace {

void keep_nodes(Ir& ir, const std::vector<bool>& kept) {
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < ir.nodes.size(); ++i) {
    if (!kept[i]) continue;
    for (const ValueId output : ir.nodes[i].outputs) ir.values[output].producer = static_cast<NodeId>(nodes.size());
    nodes.push_back(ir.nodes[i]);
  }
  ir.nodes = std::move(nodes);
}

}  // namespace

WeightSplit split_at_weights(const Ir& ir, DType parameters, std::span<const ValueId> wanted) {
  std::vector<bool> of_weights(ir.values.size());
  for (ValueId id = 0; id < ir.values.size(); ++id) {
    const Origin origin = ir.values[id].origin;
    of_weights[id] = origin == Origin::parameter || origin == Origin::state;
  }
  const auto may_be_early = [&](ValueId output) {
    const DType dtype = ir.values[output].type.dtype;
    return (dtype == DType::f32 || dtype == parameters) && std::ranges::find(wanted, output) == wanted.end();
  };
  std::vector<bool> early;
  for (const Node& node : ir.nodes) {
    early.push_back(std::ranges::all_of(node.inputs, [&](ValueId input) { return of_weights[input]; }) &&
                    std::ranges::all_of(node.outputs, may_be_early));
    for (const ValueId output : node.outputs) of_weights[output] = early.back();
  }
  WeightSplit split{ir, ir, {}};
  keep_nodes(split.weights, early);
  early.flip();
  keep_nodes(split.rest, early);
  for (const Node& node : split.rest.nodes) {
    for (const ValueId input : node.inputs) {
      Value& value = split.rest.values[input];
      if (value.origin != Origin::node || !of_weights[input]) continue;
      value.origin = Origin::parameter;
      // A name that no parameter has.
      value.name = split.weights.values[input].name = fmt::format("{} #{}", value.name, input);
      split.made.push_back(input);
    }
  }
  return split;
}

}  // namespace halfstep::passes
