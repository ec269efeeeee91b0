#include "passes/inference.h"

namespace halfstep::passes {

using graph::Ir;
using graph::Node;
using graph::Origin;
using graph::Update;
using graph::ValueId;

LoweredPrecision for_inference(const LoweredPrecision& training, const std::function<bool(const Node&)>& chosen) {
  const Ir& from = training.ir;
  LoweredPrecision result{Ir(graph::Types::settled), {}, {}};
  constexpr ValueId none = 0xFFFFFFFF;
  std::vector<ValueId> now(from.values.size(), none);
  for (ValueId id = 0; id < from.values.size(); ++id) {
    if (from.values[id].origin != Origin::node) now[id] = result.ir.add_value(from.values[id]);
  }
  for (const Node& node : from.nodes) {
    const auto first = static_cast<graph::NodeId>(result.ir.nodes.size());
    std::vector<Tensor> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(result.ir.tensor(now[input]));
    const std::optional<Tensor> instead = chosen(node) ? node.op->inference(inputs) : std::nullopt;
    if (instead) {
      result.ir.attribute(first, node.scope, node.why);
      now[node.outputs.front()] = instead->id();
      continue;
    }
    const std::vector<Tensor> outputs = applied_again(from, node, inputs);
    result.ir.attribute(first, node.scope, node.why);
    for (std::size_t i = 0; i < outputs.size(); ++i) now[node.outputs[i]] = outputs[i].id();
  }
  for (const Update& update : from.updates) {
    if (now[update.next] != none) result.ir.updates.push_back({now[update.state], now[update.next]});
  }
  for (const ValueId id : training.value) result.value.push_back(now[id]);
  return result;
}

}  // namespace halfstep::passes
